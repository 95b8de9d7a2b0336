import { quote, WeightsError } from '../finetune/weights-error';
import type { ModelPart } from './lora-keys';

/** peft lists every layer that it changes, which takes about ten kB. */
const MAX_CONFIG_LENGTH = 256 * 1024;

/**
 * The alpha of each part, which diffusers stores in the metadata: peft's configuration as JSON,
 * with `<part>.lora_alpha`.
 * @throws WeightsError if it is malformed, or describes more than a plain LoRA.
 */
export function readAlphas(metadata: ReadonlyMap<string, string>): (part: ModelPart) => number | undefined {
  const text = metadata.get('lora_adapter_metadata');
  if (text === undefined) return () => undefined;
  if (text.length > MAX_CONFIG_LENGTH)
    throw malformed(`The metadata "lora_adapter_metadata" is longer than ${MAX_CONFIG_LENGTH} characters.`);
  let config: unknown;
  try {
    config = JSON.parse(text);
  } catch {
    throw malformed('The metadata "lora_adapter_metadata" is not JSON.');
  }
  const fields = new Map<string, unknown>(Object.entries(config ?? {}));
  for (const [key, value] of fields) {
    const isPattern = key.endsWith('.alpha_pattern') && Object.keys((value as object | null) ?? {}).length > 0;
    if (isPattern || (value === true && /\.use_(rslora|dora)$/.test(key))) {
      throw new WeightsError('WeightsKindUnsupported', `The metadata ${quote(key)} asks for more than a plain LoRA.`);
    }
  }
  return (part) => {
    const alpha = fields.get(`${part}.lora_alpha`);
    if (alpha === undefined) return undefined;
    // JSON can contain a number that is too large for any type.
    if (!Number.isFinite(alpha)) throw malformed(`The metadata "${part}.lora_alpha" is not a number.`);
    return alpha as number;
  };
}

function malformed(sentence: string): WeightsError {
  return new WeightsError('WeightsMalformed', sentence);
}
