/** A check that may be requested at any time: one runs at a time, and requests during one lead to another. */
export class Looks {
  private readonly stopping = new AbortController();
  private looking?: Promise<void>;
  private again = false;

  /** @param once runs one check. `signal` aborts at the end of the process: a long check then finishes only its current item. */
  constructor(private readonly once: (signal: AbortSignal) => Promise<void>) {}

  /** Rejects with the error of a check; no other begins after that, or after `stop`. */
  look(): Promise<void> {
    this.again = true;
    return (this.looking ??= this.lookUntilQuiet());
  }

  /** Resolves when the current check has ended. */
  async stop(): Promise<void> {
    this.stopping.abort();
    await this.looking?.catch(() => undefined);
  }

  private async lookUntilQuiet(): Promise<void> {
    try {
      while (this.again && !this.stopping.signal.aborted) {
        this.again = false;
        await this.once(this.stopping.signal);
      }
    } finally {
      this.looking = undefined;
    }
  }
}
