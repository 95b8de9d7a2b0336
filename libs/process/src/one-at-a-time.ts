/** Lets pieces of work begin one after the other, in the order in which they come. */
export class OneAtATime {
  private last: Promise<unknown> = Promise.resolve();
  private unfinished = 0;

  /** Whether a piece of work is under way or waits. */
  get isBusy(): boolean {
    return this.unfinished > 0;
  }

  /** @param between done after each piece, before the next begins; it never fails */
  constructor(private readonly between: () => Promise<void> = async () => undefined) {}

  run<T>(work: () => Promise<T>): Promise<T> {
    this.unfinished++;
    const result = this.last.then(work).finally(() => this.unfinished--);
    this.last = result.catch(() => undefined).then(this.between);
    return result;
  }

  /** Resolves when all that has come so far is over. */
  async idle(): Promise<void> {
    await this.last;
  }
}
