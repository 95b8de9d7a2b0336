import type { PartName } from '../weights/original-names';
import type { FittedAdapter } from './adapter';
import { type LayerAdapters, noAdapters, sideBySide } from './row-adapters';

/** The adapter inputs of a Fine-Tune, in memory. */
export interface LoadedAdapter {
  layers: ReadonlyMap<PartName, LayerAdapters>;
  words: readonly { word?: string; count: number; vectors: ReadonlyMap<PartName, Float32Array> }[];
  bytes: number;
}

/** Changes of a text encoder by a request's adapters. */
export interface TextAdapters {
  layers: LayerAdapters;
  /** Embeddings of the ids after the vocabulary's: [vectors, width]. */
  vectors: Float32Array;
}

/** An adapter of a request. */
export interface AdapterUse {
  adapter: LoadedAdapter;
  /** By how much it changes the layers; 1 is as it was trained. */
  scale: number;
  /** The word that stands for its vectors, where that is not the one that its file names. */
  token?: string;
}

/** Reads what of an adapter goes into a model's inputs. */
export async function loadAdapter({ layers, words }: FittedAdapter): Promise<LoadedAdapter> {
  const loaded = new Map<PartName, LayerAdapters>();
  let bytes = 0;
  for (const [part, ofPart] of layers) {
    const own = new Map<string, { rank: number; a: Float32Array; b: Float32Array }>();
    for (const [path, layer] of ofPart) {
      const { a, b } = await layer.read();
      own.set(path, { rank: layer.rank, a, b });
      bytes += a.byteLength + b.byteLength;
    }
    loaded.set(part, own);
  }
  const read: LoadedAdapter['words'][number][] = [];
  for (const { word, count, vectors } of words) {
    const values = new Map<PartName, Float32Array>();
    for (const [part, readVectors] of vectors) values.set(part, await readVectors());
    for (const { byteLength } of values.values()) bytes += byteLength;
    read.push({ ...(word !== undefined && { word }), count, vectors: values });
  }
  return { layers: loaded, words: read, bytes };
}

/** The adapters of one request together. */
export class AppliedAdapters {
  private readonly parts = new Map<PartName, LayerAdapters>();
  private readonly taught: LoadedAdapter['words'];

  constructor(uses: readonly AdapterUse[]) {
    for (const part of new Set(uses.flatMap(({ adapter }) => [...adapter.layers.keys()])))
      this.parts.set(
        part,
        sideBySide(uses.map(({ adapter, scale }) => ({ layers: adapter.layers.get(part) ?? noAdapters, scale }))),
      );
    this.taught = uses.flatMap(({ adapter, token }) =>
      adapter.words.map((word) => (token === undefined ? word : { ...word, word: token })),
    );
  }

  of(part: PartName): LayerAdapters {
    return this.parts.get(part) ?? noAdapters;
  }

  /** @param width of the encoder's embeddings */
  ofTextEncoder(part: PartName, width: number): TextAdapters {
    const count = this.taught.reduce((sum, word) => sum + word.count, 0);
    const vectors = new Float32Array(count * width);
    let at = 0;
    for (const word of this.taught) {
      vectors.set(word.vectors.get(part) ?? new Float32Array(0), at);
      at += word.count * width;
    }
    return { layers: this.of(part), vectors };
  }

  /** The words that a tokenizer has to learn, and how many vectors each has. */
  get words(): { word: string; vectors: number }[] {
    return this.taught.map(({ word = '', count }) => ({ word, vectors: count }));
  }
}
