/** How many of something there are for each key at the moment. */
export class KeyCounts {
  private readonly counts = new Map<string, number>();

  get size(): number {
    return this.counts.size;
  }

  has(key: string): boolean {
    return this.counts.has(key);
  }

  entries(): [key: string, count: number][] {
    return [...this.counts];
  }

  /** @returns what takes it away again; repeated calls have no effect */
  add(key: string): () => void {
    this.counts.set(key, (this.counts.get(key) ?? 0) + 1);
    let isCounted = true;
    return () => {
      if (!isCounted) return;
      isCounted = false;
      const left = this.counts.get(key)! - 1;
      if (left > 0) this.counts.set(key, left);
      else this.counts.delete(key);
    };
  }
}
