import { setTimeout } from 'node:timers/promises';

const [firstPollMs, longestPollMs] = [10, 100];

/** Until the next poll: the longer something has been waited for, the less a poll more or less matters. */
const pauseAfter = (elapsedMs: number): number => Math.min(longestPollMs, Math.max(firstPollMs, elapsedMs / 10));

/**
 * Polls until the result is neither undefined nor false. The time limit ends a wait for something that never happens.
 */
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
 * Polls until the result is true. A question asked later than `delayMs` from now must be true: however long an answer
 * takes on a busy machine, the time of its question counts.
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
