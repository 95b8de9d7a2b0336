/** A cache of encoded rows that drops the least recently used one. */
export class EmbeddingCache {
  private readonly entries = new Map<string, Float32Array>();

  constructor(private readonly capacity: number) {}

  get(inputIds: readonly number[]): Float32Array | undefined {
    const key = inputIds.join();
    const found = this.entries.get(key);
    if (found) {
      this.entries.delete(key);
      this.entries.set(key, found);
    }
    return found;
  }

  set(inputIds: readonly number[], embedding: Float32Array): void {
    this.entries.set(inputIds.join(), embedding);
    if (this.entries.size > this.capacity) this.entries.delete(this.entries.keys().next().value!);
  }
}
