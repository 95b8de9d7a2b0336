/** A look that may be asked for at any time: one at a time, and what is asked for during one leads to another. */
export class Looks {
  private readonly stopping = new AbortController();
  private looking?: Promise<void>;
  private again = false;

  /** @param once one look. `signal` is aborted at the end of the process: a long look ends after what it has in hand. */
  constructor(private readonly once: (signal: AbortSignal) => Promise<void>) {}

  /** Rejects with what one look threw; none is begun after that one or after `stop`. */
  look(): Promise<void> {
    this.again = true;
    return (this.looking ??= this.lookUntilQuiet());
  }

  /** Resolves when the look under way has ended. */
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
