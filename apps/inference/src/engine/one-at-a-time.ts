/** Lets pieces of work begin one after the other, in the order in which they come. */
export class OneAtATime {
  private last: Promise<unknown> = Promise.resolve();

  run<T>(work: () => Promise<T>): Promise<T> {
    const result = this.last.then(work);
    this.last = result.catch(() => undefined);
    return result;
  }

  /** Resolves when all that has come so far is over. */
  async idle(): Promise<void> {
    await this.last;
  }
}
