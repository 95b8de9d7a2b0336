/** A map of so many entries at most: one more, and the entry is forgotten that was set or read longest ago. */
export class LruMap<T> {
  /** In order of use, because a map keeps insertion order. */
  private readonly entries = new Map<string, T>();

  constructor(private readonly most: number) {}

  get(key: string): T | undefined {
    if (!this.entries.has(key)) return undefined;
    const value = this.entries.get(key)!;
    this.entries.delete(key);
    this.entries.set(key, value);
    return value;
  }

  set(key: string, value: T): void {
    this.entries.delete(key);
    this.entries.set(key, value);
    if (this.entries.size > this.most) this.entries.delete(this.entries.keys().next().value!);
  }

  delete(key: string): void {
    this.entries.delete(key);
  }

  /** All entries, the one used longest ago first; to list them is no use of them. */
  list(): [key: string, value: T][] {
    return [...this.entries];
  }
}
