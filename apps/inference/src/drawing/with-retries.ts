import { setTimeout as delay } from 'node:timers/promises';

const delaysMs = [250, 1_000, 3_000];

/**
 * Retries a failed operation after growing waits, for writes whose failure would discard finished work.
 * Throws the last error.
 */
export async function withRetries<T>(operation: () => Promise<T>): Promise<T> {
  for (const delayMs of delaysMs) {
    try {
      return await operation();
    } catch {
      await delay(delayMs);
    }
  }
  return operation();
}
