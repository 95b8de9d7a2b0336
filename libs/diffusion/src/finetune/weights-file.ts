import { parseLora } from '../lora/lora';
import type { Lora } from '../lora/lora';
import { readSafetensorsHeader } from '../safetensors/safetensors-header';
import { SafetensorsError } from '../safetensors/safetensors-scan';
import { withFile } from '../tensor/byte-source';
import type { ByteSource } from '../tensor/byte-source';
import { isTextualInversion, parseTextualInversion } from '../textual-inversion/textual-inversion';
import type { TextualInversion } from '../textual-inversion/textual-inversion';
import { WeightsError } from './weights-error';

export type Weights = { kind: 'lora'; lora: Lora } | { kind: 'textual_inversion'; embedding: TextualInversion };

/**
 * Reads the header of uploaded weights of either kind, and keeps the file open during a call.
 * @throws WeightsError if the file is malformed or of neither kind.
 */
export async function withWeights<T>(
  path: string,
  use: (weights: Weights, source: ByteSource) => T | Promise<T>,
): Promise<T> {
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
