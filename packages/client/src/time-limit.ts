import { longestTimerMs } from './sleep.ts';

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
