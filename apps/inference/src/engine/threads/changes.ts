/** Lets who waits look again whenever something has changed. */
export class Changes {
  private changes = 0;
  /** The `count` after which `next` waits by default. */
  private seen = 0;
  private waiting: (() => void)[] = [];

  /** How many changes there have been. */
  get count(): number {
    return this.changes;
  }

  /** Something has changed. */
  note(): void {
    this.changes++;
    for (const resolve of this.waiting.splice(0)) resolve();
  }

  /**
   * Resolves at the next change.
   * @param since a `count`: at once if there was a change after it; by default, after the last one that was waited for
   */
  async next(since = this.seen): Promise<void> {
    while (this.changes === since) await new Promise<void>((resolve) => this.waiting.push(resolve));
    this.seen = this.changes;
  }
}
