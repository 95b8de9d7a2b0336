/** The pages of a list, one request each. */
export type Pages<T> = AsyncGenerator<T[], void, undefined>;

/** A long list, as far as it was read, newest first. Its requests follow one another. */
export class PagedList<T extends { id: string }> {
  value: readonly T[] | undefined;
  /** Why the last request failed. */
  error: unknown;
  hasMore = false;
  private pages?: Pages<T>;
  private reading: Promise<void> = Promise.resolve();

  /** @param open begins to read the list, in pages of `pageSize` */
  constructor(
    private readonly open: () => Pages<T>,
    private readonly pageSize: number,
  ) {}

  /** Reads on, until something is there that it does not have. */
  more(): Promise<void> {
    return this.inTurn(async () => {
      const known = new Set(this.value?.map(({ id }) => id));
      let found: T[];
      let fresh: T[];
      do {
        found = await this.next();
        fresh = found.filter(({ id }) => !known.has(id));
      } while (fresh.length === 0 && found.length === this.pageSize);
      this.value = [...(this.value ?? []), ...fresh];
      this.hasMore = found.length === this.pageSize;
    });
  }

  /**
   * Reads the beginning again, and keeps what is behind it. If nothing of it is known, the list begins anew.
   * @param isWhole reads all that was read before
   */
  refresh(isWhole = false): Promise<void> {
    return this.inTurn(async () => {
      const before = this.value ?? [];
      const pages = this.open();
      const found: T[] = [];
      let isFull: boolean;
      do {
        const page = (await pages.next()).value ?? [];
        found.push(...page);
        isFull = page.length === this.pageSize;
      } while (isWhole && isFull && found.length < before.length);
      const last = before.findIndex(({ id }) => id === found.at(-1)?.id);
      if (isFull && last >= 0) {
        this.value = [...found, ...before.slice(last + 1)];
        return;
      }
      this.value = found;
      this.hasMore = isFull;
      this.pages = pages;
    });
  }

  private async next(): Promise<T[]> {
    this.pages ??= this.open();
    const { value } = await this.pages.next().catch((error: unknown) => {
      // A generator that has thrown is at its end; the next one begins at the beginning.
      this.pages = undefined;
      throw error;
    });
    return value ?? [];
  }

  private inTurn(work: () => Promise<void>): Promise<void> {
    this.reading = this.reading.then(work).then(
      () => (this.error = undefined),
      (error: unknown) => void (this.error = error),
    );
    return this.reading;
  }
}
