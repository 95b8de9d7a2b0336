import { setTimeout } from 'node:timers/promises';

const [firstPollMs, longestPollMs] = [10, 100];

/** Grows with the time waited, as the precision matters less. */
const pauseAfter = (elapsedMs: number): number => Math.min(longestPollMs, Math.max(firstPollMs, elapsedMs / 10));

/** Polls until the result is neither undefined nor false, or throws after the time limit. */
export async function until<T>(
  ask: () => Promise<T | undefined | false>,
  what: string,
  timeoutMs = 120_000,
): Promise<T> {
  const startedAt = performance.now();
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    const elapsedMs = performance.now() - startedAt;
    if (elapsedMs > timeoutMs) throw new Error(`Waited ${timeoutMs} ms in vain until ${what}.`);
    await setTimeout(pauseAfter(elapsedMs));
  }
}

/**
 * Polls until the result is true. A question asked later than `delayMs` from now must be true; the time of its question
 * counts, not of its answer.
 */
export async function untilAfter(delayMs: number, ask: () => Promise<boolean>, what: string): Promise<void> {
  const startedAt = performance.now();
  for (;;) {
    const askedAt = performance.now();
    if (await ask()) return;
    if (askedAt - startedAt > delayMs)
      throw new Error(`It was asked ${Math.round(askedAt - startedAt)} ms later whether ${what}.`);
    await setTimeout(25);
  }
}
