/** Longer timers fire at once. */
export const longestTimerMs = 2 ** 31 - 1;

/**
 * Waits, unless the signal aborts.
 * @throws the signal's reason.
 */
export function sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const stop = () => {
      clearTimeout(timer);
      // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- the caller's own reason
      reject(signal?.reason);
    };
    const timer = setTimeout(
      () => {
        signal?.removeEventListener('abort', stop);
        resolve();
      },
      Math.min(milliseconds, longestTimerMs),
    );
    signal?.addEventListener('abort', stop, { once: true });
  });
}

/**
 * The n-th wait (from 0) of a series that starts at `firstMs` and grows by half up to `maxMs`, minus
 * up to a fifth at random.
 */
export function backOffMs(n: number, firstMs: number, maxMs: number): number {
  return Math.min(maxMs, firstMs * 1.5 ** n) * (1 - Math.random() / 5);
}
