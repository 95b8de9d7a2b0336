import { setTimeout as delay } from 'node:timers/promises';

const delaysMs = [250, 1_000, 3_000];

/** Calls again, after a growing wait, what failed: for writes that would throw finished work away. The last error is thrown. */
export async function retrying<T>(operation: () => Promise<T>): Promise<T> {
  for (const delayMs of delaysMs) {
    try {
      return await operation();
    } catch {
      await delay(delayMs);
    }
  }
  return operation();
}
