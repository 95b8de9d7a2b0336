import type { GraphSession } from '../model/model-session';
import { InputBuffer, toFloat32 } from '../tensor/input-buffer';
import type { PromptChunk } from '../tokenizer/prompt-chunks';
import { textEncoderValues } from '../model/graph-values';

/** Number of cached rows: those of about thirty requests, 15 MB for the largest encoder of SD 1.x and 2.x. */
const cachedRows = 64;

/** CLIP's text encoder: rows of token ids to embeddings. */
export class ClipTextEncoder {
  readonly values: ReturnType<typeof textEncoderValues>;
  private readonly cache = new EmbeddingCache(cachedRows);

  /** @throws ModelFolderError if the graph is not CLIP's text encoder */
  constructor(private readonly session: GraphSession) {
    this.values = textEncoderValues(session);
  }

  /**
   * Weighted embeddings [length, hidden width] of each chunk; equal rows are encoded once, and not at
   * all if they are cached.
   */
  async encode(chunks: readonly PromptChunk[]): Promise<Float32Array[]> {
    const known = new Map<string, Float32Array>();
    const missing = new Map<string, readonly number[]>();
    for (const { inputIds } of chunks) {
      const cached = this.cache.get(inputIds);
      if (cached) known.set(inputIds.join(), cached);
      else missing.set(inputIds.join(), inputIds);
    }
    for (const [key, embedding] of await this.run(missing)) known.set(key, embedding);
    return chunks.map(({ inputIds, weights }) => {
      const embedding = known.get(inputIds.join())!;
      return weights ? weigh(embedding, weights) : embedding;
    });
  }

  private async run(rows: ReadonlyMap<string, readonly number[]>): Promise<Map<string, Float32Array>> {
    const { ids: input, idType, output: wanted } = this.values;
    const encoded = new Map<string, Float32Array>();
    // A graph with a fixed number of rows gets that many at a time; missing ones are zeros.
    const [fixed] = input.shape;
    const batch = typeof fixed === 'number' && fixed > 0 ? fixed : rows.size;
    const all = [...rows];
    for (let from = 0; from < all.length; from += batch) {
      const group = all.slice(from, from + batch);
      const length = group[0][1].length;
      const ids = new InputBuffer(idType, [batch, length]);
      group.forEach(([, inputIds], row) => ids.values.set(inputIds, row * length));
      const output = await this.session.run({ [input.name]: ids.commit() }, wanted.name);
      const values = toFloat32(output);
      const size = values.length / batch;
      group.forEach(([key, inputIds], row) => {
        const embedding = values.slice(row * size, (row + 1) * size);
        this.cache.set(inputIds, embedding);
        encoded.set(key, embedding);
      });
    }
    return encoded;
  }
}

/**
 * Multiplies each token's embedding by its weight, then scales all to keep their mean, as desktop tools do; otherwise a
 * weight would change the contrast of the whole picture.
 */
export function weigh(embedding: Float32Array, weights: readonly number[]): Float32Array {
  const width = embedding.length / weights.length;
  const weighted = embedding.map((value, i) => value * weights[Math.floor(i / width)]);
  const ratio = mean(embedding) / mean(weighted);
  return Number.isFinite(ratio) ? weighted.map((value) => value * ratio) : weighted;
}

function mean(values: Float32Array): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

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
