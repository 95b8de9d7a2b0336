import type { Problem } from './types.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** An answer that is no success. */
export interface Refusal {
  status: number;
  headers: Headers;
  /** Undefined if it has none, or if that did not arrive whole. */
  problem: Problem | undefined;
}

/** The service was too busy or restarting, and did nothing. */
const undoneStatuses: ReadonlySet<number> = new Set([429, 503]);
/** A proxy got no answer from the service, which may have executed the request. */
const lostStatuses: ReadonlySet<number> = new Set([502, 504]);

/**
 * Whoever does not know whether a DELETE was executed cannot repeat it; the other methods can be, a
 * POST because of its key.
 */
export function mayRepeat(method: Method, outcome: Refusal | Error): boolean {
  if (!(outcome instanceof Error) && undoneStatuses.has(outcome.status)) return true;
  return method !== 'DELETE' && (outcome instanceof Error || lostStatuses.has(outcome.status));
}

/** An earlier attempt of this POST, whose answer was lost, holds its Idempotency-Key. */
export function isStillRunning(method: Method, outcome: Refusal | Error): boolean {
  if (method !== 'POST' || outcome instanceof Error || outcome.status !== 409) return false;
  return outcome.problem?.code === 'IdempotencyKeyInUse';
}

/** The service sends seconds, a proxy perhaps a date. */
export function retryAfterMs(outcome: Refusal | Error): number {
  const text = (!(outcome instanceof Error) && outcome.headers.get('retry-after')) || '0';
  const milliseconds = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now();
  return Number.isFinite(milliseconds) ? Math.max(0, milliseconds) : 0;
}
