import { parseLoraKey } from './lora-keys';
import type { LoraFormat, ModelPart } from './lora-keys';
import { toFloat32 } from './safetensors';
import type { SafetensorsEntry } from './safetensors';
import { quote, shapeText, WeightsError } from './weights-error';

/** The change of one layer: its weight gains `alpha / rank * up x down`. */
export interface LoraModule {
  part: ModelPart;
  /** The layer's path, see `canonicalPath`. */
  path: string;
  /** A key of the file that belongs to it, for messages. */
  key: string;
  /** [out, rank] */
  up: Float32Array;
  /** [rank, in * height * width] */
  down: Float32Array;
  /** The changed weight's shape: [out, in] or, for a convolution, [out, in, height, width]. */
  shape: number[];
  rank: number;
  alpha: number;
  conv: boolean;
}

export interface Lora {
  format: LoraFormat;
  /** By part and path: `unet.<path>`. */
  modules: Map<string, LoraModule>;
}

interface Factors {
  part: ModelPart;
  path: string;
  key: string;
  down?: SafetensorsEntry;
  up?: SafetensorsEntry;
  mid?: SafetensorsEntry;
  alpha?: SafetensorsEntry;
}

/**
 * Reads a LoRA of linear and convolution layers from a file's tensors.
 * @param metadata the file's own, in which peft keeps alpha
 * @throws WeightsError if a key is unknown, a factor is missing, or shapes do not go together.
 */
export function parseLora(
  entries: ReadonlyMap<string, SafetensorsEntry>,
  metadata: ReadonlyMap<string, string> = new Map(),
): Lora {
  const layers = new Map<string, Factors>();
  let format: LoraFormat = 'diffusers';
  for (const [key, entry] of entries) {
    const { part, path, role, format: written } = parseLoraKey(key);
    format = written;
    const name = `${part}.${path}`;
    const layer = layers.get(name) ?? { part, path, key };
    if (layer[role]) throw malformed(`The keys ${quote(layer.key)} and ${quote(key)} are for the same layer.`);
    if (!['F64', 'F32', 'F16', 'BF16'].includes(entry.dtype)) {
      throw malformed(`The tensor ${quote(key)} has the type ${entry.dtype}, which is not a floating-point type.`);
    }
    layers.set(name, { ...layer, [role]: entry });
  }
  if (layers.size === 0) throw malformed('The file holds no tensors.');
  const alphas = readAlphas(metadata);
  return { format, modules: new Map([...layers].map(([name, layer]) => [name, toModule(layer, alphas)])) };
}

function toModule(layer: Factors, alphas: (part: ModelPart) => number | undefined): LoraModule {
  const { part, path, key, down, up, mid, alpha } = layer;
  if (!down || !up) throw malformed(`The layer of ${quote(key)} has no ${down ? 'up' : 'down'} factor.`);
  const conv = down.shape.length === 4;
  const rank = down.shape[0];
  const isPointwise = (shape: number[]) => shape.slice(2).every((length) => length === 1);
  if (
    ![2, 4].includes(down.shape.length) ||
    up.shape.length !== down.shape.length ||
    up.shape[1] !== rank ||
    !isPointwise(up.shape) ||
    [...down.shape, ...up.shape].includes(0)
  ) {
    throw malformed(
      `The layer of ${quote(key)} has the factors ${shapeText(down.shape)} and ${shapeText(up.shape)}, which do not multiply.`,
    );
  }
  const [out, input] = [up.shape[0], down.shape[1]];
  let kernel = down.shape.slice(2);
  let values = finite(down, key);
  if (mid) {
    if (!conv || !isPointwise(down.shape) || mid.shape.length !== 4 || mid.shape[0] !== rank || mid.shape[1] !== rank) {
      throw malformed(
        `The layer of ${quote(key)} has a middle factor ${shapeText(mid.shape)} that does not fit ${shapeText(down.shape)}.`,
      );
    }
    kernel = mid.shape.slice(2);
    values = foldMid(finite(mid, key), values, rank, input, kernel[0] * kernel[1]);
  }
  if (alpha && alpha.data.length !== 1) throw malformed(`The alpha of ${quote(key)} is not a single number.`);
  return {
    part,
    path,
    key,
    up: finite(up, key),
    down: values,
    shape: [out, input, ...kernel],
    rank,
    alpha: alpha ? finite(alpha, key)[0] : (alphas(part) ?? rank),
    conv,
  };
}

/** Tucker form: down[a, i, k] = sum over b of mid[a, b, k] * down[b, i]. */
function foldMid(mid: Float32Array, down: Float32Array, rank: number, input: number, taps: number): Float32Array {
  const folded = new Float32Array(rank * input * taps);
  for (let a = 0; a < rank; a++) {
    for (let b = 0; b < rank; b++) {
      for (let i = 0; i < input; i++) {
        const factor = down[b * input + i];
        for (let k = 0; k < taps; k++) folded[(a * input + i) * taps + k] += mid[(a * rank + b) * taps + k] * factor;
      }
    }
  }
  return folded;
}

function finite(entry: SafetensorsEntry, key: string): Float32Array {
  const values = toFloat32(entry);
  if (!values.every(Number.isFinite)) throw malformed(`The layer of ${quote(key)} has values that are not finite.`);
  return values;
}

/** diffusers keeps peft's configuration as JSON in the metadata, `<part>.lora_alpha` in it. */
function readAlphas(metadata: ReadonlyMap<string, string>): (part: ModelPart) => number | undefined {
  const text = metadata.get('lora_adapter_metadata');
  if (text === undefined) return () => undefined;
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
    if (typeof alpha !== 'number') throw malformed(`The metadata "${part}.lora_alpha" is not a number.`);
    return alpha;
  };
}

function malformed(sentence: string): WeightsError {
  return new WeightsError('WeightsMalformed', sentence);
}
