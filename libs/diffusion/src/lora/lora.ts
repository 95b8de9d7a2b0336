import { malformed, quote, shapeText, WeightsError } from '../finetune/weights-error';
import { isFiniteTensor, readFloats } from '../safetensors/safetensors';
import type { SafetensorsHeader, SafetensorsInfo } from '../safetensors/safetensors-header';
import type { ByteSource } from '../tensor/byte-source';
import { type LoraFormat, type ModelPart, parseLoraKey } from './lora-keys';

/**
 * The change of one layer: its weight gains `alpha / rank * up x down`. The factors stay in the file until the merge.
 */
export interface LoraModule {
  part: ModelPart;
  /** The layer's path, see `canonicalPath`. */
  path: string;
  /** One of its keys in the file, for messages. */
  key: string;
  /** [out, rank] */
  up: SafetensorsInfo;
  /** [rank, in * height * width]; with a middle factor [rank, in]. */
  down: SafetensorsInfo;
  /** Tucker form: [rank, rank, height, width]. */
  mid?: SafetensorsInfo;
  /** Shape of the changed weight: [out, in] or, for a convolution, [out, in, height, width]. */
  shape: number[];
  rank: number;
  alpha: number;
  conv: boolean;
}

export interface Lora {
  format: LoraFormat;
  /** Layers by part and path: `unet.<path>`. */
  modules: Map<string, LoraModule>;
}

interface Factors {
  part: ModelPart;
  path: string;
  key: string;
  down?: SafetensorsInfo;
  up?: SafetensorsInfo;
  mid?: SafetensorsInfo;
  alpha?: SafetensorsInfo;
}

/**
 * Reads a LoRA of linear and convolution layers from a file's header. The only tensors read are scalar alphas.
 * @throws WeightsError if a key is unknown, a factor is missing, or shapes do not match.
 */
export function parseLora({ tensors, metadata }: SafetensorsHeader, source: ByteSource): Lora {
  const layers = new Map<string, Factors>();
  let format: LoraFormat = 'diffusers';
  for (const [key, info] of tensors) {
    const { part, path, role, format: written } = parseLoraKey(key);
    format = written;
    const name = `${part}.${path}`;
    const layer = layers.get(name) ?? { part, path, key };
    if (layer[role]) throw malformed(`The keys ${quote(layer.key)} and ${quote(key)} are for the same layer.`);
    if (!['F64', 'F32', 'F16', 'BF16'].includes(info.dtype))
      throw malformed(`The tensor ${quote(key)} has the type ${info.dtype}, which is not a floating-point type.`);
    layers.set(name, { ...layer, [role]: info });
  }
  if (layers.size === 0) throw malformed('The file holds no tensors.');
  const alphas = readAlphas(metadata);
  const modules = [...layers].map(([name, layer]) => [name, toModule(layer, alphas, source)] as const);
  return { format, modules: new Map(modules) };
}

function toModule(layer: Factors, alphas: (part: ModelPart) => number | undefined, source: ByteSource): LoraModule {
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
  if (mid) {
    const fits = conv && isPointwise(down.shape) && mid.shape.length === 4 && !mid.shape.includes(0);
    if (!fits || mid.shape[0] !== rank || mid.shape[1] !== rank)
      throw malformed(
        `The layer of ${quote(key)} has a middle factor ${shapeText(mid.shape)} that does not fit ${shapeText(down.shape)}.`,
      );
  }
  const shape = [up.shape[0], down.shape[1], ...(mid ?? down).shape.slice(2)];
  const scaling = alpha ? readAlpha(source, alpha, key) : (alphas(part) ?? rank);
  return { part, path, key, up, down, ...(mid && { mid }), shape, rank, alpha: scaling, conv };
}

function readAlpha(source: ByteSource, alpha: SafetensorsInfo, key: string): number {
  if (alpha.shape.some((length) => length !== 1)) throw malformed(`The alpha of ${quote(key)} is not a single number.`);
  const [value] = readFloats(source, alpha);
  if (!Number.isFinite(value)) throw notFinite(key);
  return value;
}

/** Reads every factor once. @throws WeightsError if a value is not finite. */
export function assertFinite({ modules }: Lora, source: ByteSource): void {
  for (const { key, up, down, mid } of modules.values())
    for (const factor of [up, down, mid]) if (factor && !isFiniteTensor(source, factor)) throw notFinite(key);
}

function notFinite(key: string): WeightsError {
  return malformed(`The layer of ${quote(key)} has values that are not finite.`);
}

/** peft lists every layer that it changes, which takes about ten kB. */
const MAX_CONFIG_LENGTH = 256 * 1024;

/**
 * The alpha of each part, which diffusers stores in the metadata: peft's configuration as JSON,
 * with `<part>.lora_alpha`.
 * @throws WeightsError if it is malformed, or describes more than a plain LoRA.
 */
function readAlphas(metadata: ReadonlyMap<string, string>): (part: ModelPart) => number | undefined {
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
    if (isPattern || (value === true && /\.use_(rslora|dora)$/.test(key)))
      throw new WeightsError('WeightsKindUnsupported', `The metadata ${quote(key)} asks for more than a plain LoRA.`);
  }
  return (part) => {
    const alpha = fields.get(`${part}.lora_alpha`);
    if (alpha === undefined) return undefined;
    // JSON can contain a number that is too large for any type.
    if (!Number.isFinite(alpha)) throw malformed(`The metadata "${part}.lora_alpha" is not a number.`);
    return alpha as number;
  };
}
