import { parseLora } from './lora';
import type { Lora } from './lora';
import { readSafetensors, readSafetensorsHeader, SafetensorsError } from './safetensors';
import { isTextualInversion, parseTextualInversion } from './textual-inversion';
import type { TextualInversion } from './textual-inversion';
import { WeightsError } from './weights-error';

export type Weights = { kind: 'lora'; lora: Lora } | { kind: 'textual_inversion'; embedding: TextualInversion };

/** Reads uploaded weights of either kind. @throws WeightsError if the file is malformed or holds neither. */
export async function readWeights(path: string): Promise<Weights> {
  try {
    const { metadata } = readSafetensorsHeader(path);
    const entries = await readSafetensors(path);
    if (isTextualInversion(entries)) return { kind: 'textual_inversion', embedding: parseTextualInversion(entries) };
    return { kind: 'lora', lora: parseLora(entries, metadata) };
  } catch (error) {
    if (error instanceof SafetensorsError) throw new WeightsError('WeightsMalformed', error.message);
    throw error;
  }
}

/** @throws WeightsError if the file is not a LoRA. */
export async function loadLora(path: string): Promise<Lora> {
  const weights = await readWeights(path);
  if (weights.kind === 'lora') return weights.lora;
  throw new WeightsError('WeightsKindUnsupported', 'The file holds a textual inversion where a LoRA is expected.');
}

/** @throws WeightsError if the file is not a textual inversion embedding. */
export async function loadTextualInversion(path: string): Promise<TextualInversion> {
  const weights = await readWeights(path);
  if (weights.kind === 'textual_inversion') return weights.embedding;
  throw new WeightsError('WeightsKindUnsupported', 'The file holds a LoRA where a textual inversion is expected.');
}
