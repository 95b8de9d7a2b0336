import { setTimeout } from 'node:timers/promises';

/** Polls until the result is neither undefined nor false. The time limit ends a wait for something that never happens. */
export async function until<T>(
  ask: () => Promise<T | undefined | false>,
  what: string,
  timeoutMs = 120_000,
): Promise<T> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    if (Date.now() > deadline) throw new Error(`Waited ${timeoutMs} ms in vain until ${what}.`);
    await setTimeout(25);
  }
}

/**
 * Polls until the result is true. A question asked later than `delayMs` from now must be true: however long an answer takes on a
 * busy machine, the time of its question counts.
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
