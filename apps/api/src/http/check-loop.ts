/** A check that may be requested at any time: one runs at a time, and requests during one lead to another. */
export class CheckLoop {
  private readonly stopping = new AbortController();
  private running?: Promise<void>;
  private isRequested = false;

  /**
   * @param check runs one check. `signal` aborts at the end of the process: a long check then finishes
   * only its current item.
   */
  constructor(private readonly check: (signal: AbortSignal) => Promise<void>) {}

  /** Rejects with the error of a check; no other begins after that, or after `stop`. */
  request(): Promise<void> {
    this.isRequested = true;
    return (this.running ??= this.checkWhileRequested());
  }

  /** Resolves when the current check has ended. */
  async stop(): Promise<void> {
    this.stopping.abort();
    await this.running?.catch(() => undefined);
  }

  private async checkWhileRequested(): Promise<void> {
    try {
      while (this.isRequested && !this.stopping.signal.aborted) {
        this.isRequested = false;
        await this.check(this.stopping.signal);
      }
    } finally {
      this.running = undefined;
    }
  }
}
