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

/** A signal that aborts some time after its start, if nobody ends it before. */
export class TimeLimit {
  private readonly controller = new AbortController();
  private timer?: ReturnType<typeof setTimeout>;

  start(milliseconds: number): void {
    this.end();
    const reason = () => new DOMException('The time limit is over.', 'TimeoutError');
    this.timer = setTimeout(() => this.controller.abort(reason()), Math.min(milliseconds, longestTimerMs));
  }

  end(): void {
    clearTimeout(this.timer);
  }

  /** Whether it is what ended work that failed with this error. */
  endedWith(error: unknown): boolean {
    return this.controller.signal.aborted && error === this.controller.signal.reason;
  }

  /** Aborts with this limit or the caller's signal. */
  or(signal: AbortSignal | undefined): AbortSignal {
    return signal ? AbortSignal.any([signal, this.controller.signal]) : this.controller.signal;
  }
}
