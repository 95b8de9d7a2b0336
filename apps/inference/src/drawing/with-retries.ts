import { setTimeout as delay } from 'node:timers/promises';

const delaysMs = [250, 1_000, 3_000];
/** Results that take long to make are worth waiting for a database that is restarted or moved to another machine. */
const patientDelaysMs = [...delaysMs, ...Array<number>(24).fill(5_000)];

/**
 * Retries a failed operation after growing waits, for writes whose failure would discard finished work.
 * Throws the last error.
 * @param patience if given, it is retried for two minutes instead of some seconds, unless this aborts
 */
export async function withRetries<T>(operation: () => Promise<T>, patience?: AbortSignal): Promise<T> {
  for (const delayMs of patience ? patientDelaysMs : delaysMs) {
    try {
      return await operation();
    } catch (error) {
      await delay(delayMs, undefined, { signal: patience }).catch(() => {
        throw error;
      });
    }
  }
  return operation();
}
