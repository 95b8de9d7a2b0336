import { LRUCache } from 'lru-cache';
import type { TextAdapters } from '../adapters/applied-adapters';
import { AdapterInputs, noAdapters } from '../adapters/row-adapters';
import type { GraphSession } from '../sessions/model-session';
import { float32, floatsOf, int64 } from '../sessions/tensor';
import type { PromptChunk } from './prompt-chunks';

/** Number of cached rows: those of about thirty requests, 15 MB for the largest encoder of SD 1.x and 2.x. */
const cachedRows = 64;

/** A row of token ids, encoded. */
export interface EncodedRow {
  /** [tokens, width] */
  states: Float32Array;
  /** Of the whole text, where the encoder gives it: [width]. */
  pooled?: Float32Array;
}

/** CLIP's text encoder: rows of token ids to embeddings. */
export class ClipTextEncoder {
  private readonly cache = new LRUCache<string, EncodedRow>({ max: cachedRows });
  private readonly adapterInputs: AdapterInputs;
  readonly width: number;

  constructor(private readonly session: GraphSession) {
    this.adapterInputs = new AdapterInputs(session.inputs);
    this.width = Number(session.inputs.find(({ name }) => name === 'token_vectors')!.shape[1]);
  }

  get spent(): GraphSession['spent'] {
    return this.session.spent;
  }

  release(): Promise<void> {
    return this.session.release();
  }

  /**
   * The rows with the tokens' weights applied; equal rows are encoded once, and those without adapters not at all if
   * they are cached.
   */
  async encode(chunks: readonly PromptChunk[], adapters?: TextAdapters): Promise<EncodedRow[]> {
    const isPlain = !adapters || (adapters.layers.size === 0 && adapters.vectors.length === 0);
    const cache = isPlain ? this.cache : new Map<string, EncodedRow>();
    const known = new Map<string, EncodedRow>();
    const missing = new Map<string, readonly number[]>();
    for (const { inputIds } of chunks) {
      const key = inputIds.join();
      const cached = cache.get(key);
      if (cached) known.set(key, cached);
      else missing.set(key, inputIds);
    }
    if (missing.size > 0) {
      const rows = [...missing.values()];
      for (const [i, row] of (await this.run(rows, isPlain ? undefined : adapters)).entries()) {
        const key = rows[i].join();
        cache.set(key, row);
        known.set(key, row);
      }
    }
    return chunks.map(({ inputIds, weights }) => {
      const row = known.get(inputIds.join())!;
      return weights ? { ...row, states: weigh(row.states, weights) } : row;
    });
  }

  private async run(rows: readonly (readonly number[])[], adapters?: TextAdapters): Promise<EncodedRow[]> {
    const [{ length }] = rows;
    const ids = BigInt64Array.from(rows.flat(), BigInt);
    const vectors = adapters?.vectors ?? new Float32Array(0);
    const results = await this.session.run({
      input_ids: int64(ids, [rows.length, length]),
      token_vectors: float32(vectors, [vectors.length / this.width, this.width]),
      ...this.adapterInputs.feeds(rows.map(() => adapters?.layers ?? noAdapters)),
    });
    const rowsOf = (name: string): Float32Array[] => {
      const values = floatsOf(results[name]);
      const size = values.length / rows.length;
      return rows.map((_, row) => values.slice(row * size, (row + 1) * size));
    };
    const states = rowsOf(Object.keys(results).find((name) => name.startsWith('hidden_states.'))!);
    const pooled = 'text_embeds' in results ? rowsOf('text_embeds') : undefined;
    return states.map((each, row) => ({ states: each, ...(pooled && { pooled: pooled[row] }) }));
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
