import { assertFinite, type Lora, parseLora } from '../lora/lora';
import { readSafetensorsHeader, SafetensorsError } from '../safetensors/safetensors-header';
import { type ByteSource, withFile } from '../tensor/byte-source';
import {
  assertFiniteVectors,
  fitTextualInversion,
  isTextualInversion,
  parseTextualInversion,
  type TextualInversion,
} from '../textual-inversion/textual-inversion';
import { WeightsError } from './weights-error';
import { fitLora } from '../lora/lora-fit';
import { type LoraFormat, parseLoraKey } from '../lora/lora-keys';

export type Weights = { kind: 'lora'; lora: Lora } | { kind: 'textual_inversion'; embedding: TextualInversion };

/**
 * Reads the header of uploaded weights of either kind, and keeps the file open during a call.
 * @throws WeightsError if the file is malformed or of neither kind.
 */
async function withWeights<T>(path: string, use: (weights: Weights, source: ByteSource) => T | Promise<T>): Promise<T> {
  try {
    return await withFile(path, (source) => {
      const header = readSafetensorsHeader(source);
      if (isTextualInversion(header.tensors))
        return use({ kind: 'textual_inversion', embedding: parseTextualInversion(header.tensors) }, source);
      return use({ kind: 'lora', lora: parseLora(header, source) }, source);
    });
  } catch (error) {
    if (error instanceof SafetensorsError) throw new WeightsError('WeightsMalformed', error.message);
    throw error;
  }
}

/** @throws WeightsError if the file is not a LoRA. */
export function withLora<T>(path: string, use: (lora: Lora, source: ByteSource) => T | Promise<T>): Promise<T> {
  return withWeights(path, (weights, source) => {
    if (weights.kind === 'lora') return use(weights.lora, source);
    throw new WeightsError('WeightsKindUnsupported', 'The file holds a textual inversion where a LoRA is expected.');
  });
}

/** @throws WeightsError if the file is not a textual inversion embedding. */
export function withTextualInversion<T>(
  path: string,
  use: (embedding: TextualInversion, source: ByteSource) => T | Promise<T>,
): Promise<T> {
  return withWeights(path, (weights, source) => {
    if (weights.kind === 'textual_inversion') return use(weights.embedding, source);
    throw new WeightsError('WeightsKindUnsupported', 'The file holds a LoRA where a textual inversion is expected.');
  });
}

/** Properties of an accepted file of weights. */
export interface WeightsSummary {
  kind: 'lora' | 'textual_inversion';
  format: LoraFormat | TextualInversion['format'];
  /** Number of layers that a LoRA changes. */
  modules: number;
  /** Its distinct ranks, ascending. */
  rank: number[];
  /** Number of embeddings of a textual inversion. */
  tokens?: number;
}

/**
 * Checks uploaded weights against their base model: first the header alone, with every layer and every shape; only if
 * that fits are the numbers read, once and in pieces.
 * @throws WeightsError if they are malformed, of another kind, or do not fit the model; OnnxModelError if
 * the model is malformed.
 */
export function inspectWeights(path: string, baseFolder: string): Promise<WeightsSummary> {
  return withWeights(path, async (weights, source) => {
    if (weights.kind === 'textual_inversion') {
      const { format, count } = weights.embedding;
      await fitTextualInversion(weights.embedding, baseFolder);
      assertFiniteVectors(weights.embedding, source);
      return { kind: weights.kind, format, modules: 0, rank: [], tokens: count };
    }
    const { format, modules } = weights.lora;
    fitLora(weights.lora, baseFolder);
    assertFinite(weights.lora, source);
    const ranks = new Set([...modules.values()].map(({ rank }) => rank));
    return { kind: weights.kind, format, modules: modules.size, rank: [...ranks].sort((a, b) => a - b) };
  });
}

/**
 * What a safetensors file was trained as, also where it does not fit Stable Diffusion 1.x and 2.x; undefined if it is
 * of neither kind, such as a checkpoint, or no such file.
 */
export async function weightsKind(path: string): Promise<Weights['kind'] | undefined> {
  try {
    const { tensors } = await withFile(path, readSafetensorsHeader);
    if (isTextualInversion(tensors)) return 'textual_inversion';
    return [...tensors.keys()].some(isOfLora) ? 'lora' : undefined;
  } catch (error) {
    if (error instanceof SafetensorsError) return undefined;
    throw error;
  }
}

function isOfLora(key: string): boolean {
  try {
    parseLoraKey(key);
    return true;
  } catch (error) {
    // A relative of LoRA, or the LoRA of another model, is told by its keys too.
    return error instanceof WeightsError && error.code !== 'WeightsMalformed';
  }
}
