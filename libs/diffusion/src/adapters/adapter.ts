import type { NamedTensor } from '../weights/named-tensor';
import type { PartName } from '../weights/original-names';
import type { Factor } from './keys';
import type { ScalingOf } from './scaling';

export type AdapterKind = 'lora' | 'textual_inversion';

/** An uploaded file whose header was read; nothing says yet to which layers of a model its names belong. */
export interface Adapter {
  kind: AdapterKind;
  /** By the layer's name in the file, as `canonicalName` has it. */
  layers: ReadonlyMap<string, AdapterLayer>;
  words: readonly AdapterWord[];
  scalingOf: ScalingOf;
}

/** A layer's name with `_` for dots and slashes, which many files do not tell apart. */
export const canonicalName = (name: string): string => name.replace(/[./]/g, '_').replace(/_processor(?=_)/, '');

/** Tensors of a file for one layer. */
export interface AdapterLayer {
  /** One of its keys, for messages. */
  key: string;
  factors: ReadonlyMap<Factor, NamedTensor>;
  alpha?: number;
}

/** Embeddings of one word. */
export interface AdapterWord {
  /** The word that the file names, if it does. */
  word?: string;
  /** [count, width] or [width]; of a file that does not name a text encoder there is one, without part. */
  vectors: { tensor: NamedTensor; part?: PartName }[];
}

/** Factors of what a layer's weight gains, for its adapter inputs; they stay in their file until they are read. */
export interface LowRankLayer {
  rank: number;
  /** [rank, in], or [rank, in, height, width] of a convolution: the axes after the first are those of the weight. */
  aShape: readonly number[];
  /** `a` of `aShape`, and `b` [out, rank], which is multiplied by alpha / rank and not by the caller's scale. */
  read(): Promise<{ a: Float32Array; b: Float32Array }>;
}

/** A tensor that an adapter changes by what is not of low rank. */
export interface MergedTensor {
  base: NamedTensor;
  /** All values at a scale, in the order of `base.shape`. */
  read(scale: number): Promise<Float32Array>;
}

/** Learned embeddings that stand for one word of a text. */
export interface LearnedWord {
  /** The word that the file names, if it does. */
  word?: string;
  /** How many tokens it takes, in each text encoder. */
  count: number;
  /** [count, width] for each of the model's text encoders. */
  vectors: ReadonlyMap<PartName, () => Promise<Float32Array>>;
}

/** An adapter's changes of one model. They may include layers of a text encoder that clip skip leaves out. */
export interface FittedAdapter {
  kind: AdapterKind;
  /** By part and path of the layer: `down_blocks.0.attentions.0.proj_in`. */
  layers: ReadonlyMap<PartName, ReadonlyMap<string, LowRankLayer>>;
  /** By part and name of the tensor: `down_blocks.0.attentions.0.proj_in.weight`. */
  merged: ReadonlyMap<PartName, ReadonlyMap<string, MergedTensor>>;
  /** One in a textual inversion; a LoRA may bring words along. */
  words: readonly LearnedWord[];
  /** Tensors for layers that the model does not have. */
  unmatched: number;
  /** A sentence for whoever uploaded it, where something was assumed. */
  note?: string;
}
