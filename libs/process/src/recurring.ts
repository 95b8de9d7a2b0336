/** How far a wait may differ from the interval: processes that started together do not stay in step. */
const jitter = 0.25;

export interface RecurringOptions {
  /** Average time from the end of one round to the beginning of the next. */
  intervalMs: number;
  /** One round. `signal` aborts when the process ends; a long round then finishes only the item it is working on. */
  work: (signal: AbortSignal) => Promise<unknown>;
  /** Called for each failed round; the next one follows anyway. */
  onError: (error: Error) => void;
}

/** Work that is repeated at slightly irregular intervals: never two rounds at once, and none after `stop`. */
export class Recurring {
  private readonly stopping = new AbortController();
  private timer?: NodeJS.Timeout;
  private round: Promise<void> = Promise.resolve();

  constructor(private readonly options: RecurringOptions) {}

  /** The first round comes after an interval. The timer keeps no process alive. */
  start(): void {
    if (this.stopping.signal.aborted) return;
    const waitMs = this.options.intervalMs * (1 - jitter + 2 * jitter * Math.random());
    this.timer = setTimeout(() => {
      this.round = this.run().then(() => this.start());
    }, waitMs).unref();
  }

  /** Resolves when the current round has ended. */
  async stop(): Promise<void> {
    this.stopping.abort();
    clearTimeout(this.timer);
    await this.round;
  }

  private async run(): Promise<void> {
    try {
      await this.options.work(this.stopping.signal);
    } catch (error) {
      // A round that a shutdown interrupted has not failed.
      if (!this.stopping.signal.aborted) this.options.onError(error as Error);
    }
  }
}
