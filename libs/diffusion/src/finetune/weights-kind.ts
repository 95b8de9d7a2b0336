import { parseLoraKey } from '../lora/lora-keys';
import { readSafetensorsHeader } from '../safetensors/safetensors-header';
import { SafetensorsError } from '../safetensors/safetensors-scan';
import { withFile } from '../tensor/byte-source';
import { isTextualInversion } from '../textual-inversion/textual-inversion';
import type { Weights } from './weights-file';
import { WeightsError } from './weights-error';

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
