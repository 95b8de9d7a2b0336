import { setTimeout } from 'node:timers/promises';

/** Asks again and again, with a short rest between, until the answer is not undefined or false. The limit ends what will never be so. */
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
 * Asks until the answer is true. What was asked for later than `delayMs` from now has to be: however long an answer takes on a busy
 * machine, what counts is when its question was asked.
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
