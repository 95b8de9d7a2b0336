const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;

/** Waits after each failed attempt, in milliseconds: ten attempts over three days. */
const waitsMs = [
  5 * second,
  30 * second,
  2 * minute,
  10 * minute,
  30 * minute,
  2 * hour,
  6 * hour,
  18 * hour,
  45 * hour,
];

/** A tenth of a wait, up or down, so that receivers that failed together are not retried together. */
const jitter = 0.1;

/** Attempts of a delivery in total. */
export const maxAttempts = waitsMs.length + 1;

/**
 * The wait after attempt number `made` (from 1) failed; undefined if it was the last.
 * @param retryAfterMs the receiver's request; honoured up to a day if it is longer than our own wait.
 * @param random from 0 to 1.
 */
export function nextWaitMs(made: number, retryAfterMs = 0, random = Math.random()): number | undefined {
  const wait = waitsMs[made - 1];
  if (wait === undefined) return undefined;
  return Math.round(Math.max(wait * (1 - jitter + 2 * jitter * random), Math.min(retryAfterMs, 24 * hour)));
}

/** The `Retry-After` header as a wait in milliseconds: seconds or an HTTP date; 0 if absent or unreadable. */
export function retryAfterMs(header: unknown, now = Date.now()): number {
  if (typeof header !== 'string') return 0;
  if (/^\d{1,9}$/.test(header.trim())) return Number(header) * second;
  const date = Date.parse(header);
  return Number.isNaN(date) ? 0 : Math.max(0, date - now);
}
