/** How far a wait may be from the interval, up or down: processes that started together do not work together for ever. */
const jitter = 0.25;

export interface RecurringOptions {
  /** From the end of one round to the beginning of the next, on average. */
  intervalMs: number;
  /** One round. `signal` is aborted at the end of the process: a long round ends after what it has in hand. */
  work: (signal: AbortSignal) => Promise<unknown>;
  /** Told of each round that failed; the next one comes all the same. */
  onError: (error: Error) => void;
}

/** Work that is done again and again: never two rounds at once, at no regular beat, and none after `stop`. */
export class Recurring {
  private readonly stopping = new AbortController();
  private timer?: NodeJS.Timeout;
  private round: Promise<void> = Promise.resolve();

  constructor(private readonly options: RecurringOptions) {}

  /** The first round comes after an interval. Keeps no process alive. */
  start(): void {
    if (this.stopping.signal.aborted) return;
    const waitMs = this.options.intervalMs * (1 - jitter + 2 * jitter * Math.random());
    this.timer = setTimeout(() => {
      this.round = this.run().then(() => this.start());
    }, waitMs).unref();
  }

  /** Resolves when the round under way has ended. */
  async stop(): Promise<void> {
    this.stopping.abort();
    clearTimeout(this.timer);
    await this.round;
  }

  private async run(): Promise<void> {
    try {
      await this.options.work(this.stopping.signal);
    } catch (error) {
      // What a shutdown interrupted has not failed.
      if (!this.stopping.signal.aborted) this.options.onError(error as Error);
    }
  }
}
