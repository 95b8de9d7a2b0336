import type { ModelLoaded } from './engine-protocol';

/** Anything with sessions to release. */
export interface Releasable {
  release(): Promise<void>;
}

/** A model to load: its estimated bytes, and how to load it. */
export interface ModelSpec<T extends Releasable> {
  bytes: number;
  load(): Promise<T>;
}

/**
 * The loaded models of one device. Loads on first use and keeps what fits into a budget; the least recently used are released
 * first, and one model is always kept, however large. Calls must not overlap, or a model in use could be released.
 */
export class ModelRegistry {
  /** In order of use, because a map keeps insertion order. */
  private readonly loaded = new Map<string, { model: Releasable; bytes: number }>();

  constructor(
    private readonly budgetBytes: number,
    private readonly onLoad: (report: ModelLoaded) => void,
  ) {}

  /** Estimate of what all loaded models take. */
  get bytes(): number {
    return [...this.loaded.values()].reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** Whether a model of this key is loaded; asking does not count as a use. */
  has(key: string): boolean {
    return this.loaded.has(key);
  }

  /** The model of this key, which must always have the same type. A model that fails to load is not kept. */
  async get<T extends Releasable>(key: string, describe: () => Promise<ModelSpec<T>>): Promise<T> {
    const found = this.loaded.get(key);
    if (found) {
      this.loaded.delete(key);
      this.loaded.set(key, found);
      return found.model as T;
    }
    const spec = await describe();
    // Room is made first, because two large models at once may exceed the memory.
    const evicted = await this.evict(spec.bytes);
    const startedAt = performance.now();
    const model = await spec.load();
    this.loaded.set(key, { model, bytes: spec.bytes });
    const loadMs = Math.round(performance.now() - startedAt);
    this.onLoad({ key, loadMs, modelBytes: spec.bytes, totalBytes: this.bytes, evicted });
    return model;
  }

  /** Releases every model. */
  async clear(): Promise<void> {
    await this.evict(Infinity);
  }

  private async evict(wanted: number): Promise<string[]> {
    const evicted: string[] = [];
    for (const [key, { model }] of [...this.loaded]) {
      if (this.bytes + wanted <= this.budgetBytes) break;
      this.loaded.delete(key);
      await model.release();
      evicted.push(key);
    }
    return evicted;
  }
}
