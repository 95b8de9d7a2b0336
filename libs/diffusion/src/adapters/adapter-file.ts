import { isFiniteTensor, readFloats } from '../safetensors/safetensors';
import { readSafetensorsHeader, SafetensorsError, type SafetensorsInfo } from '../safetensors/safetensors-header';
import { type ByteSource, withFile } from '../tensor/byte-source';
import { byteLength, type NamedTensor, type NumberType, type TensorType } from '../weights/named-tensor';
import { quote } from '../safetensors/quote';
import { type Adapter, type AdapterLayer, canonicalName } from './adapter';
import { type Factor, parseKey, refuseOtherFiles } from './keys';
import { readScaling } from './scaling';
import { malformed, shapeText } from './weights-error';
import { isBundledWord, isTextualInversion, readWords } from './words';

/**
 * Reads the header of an uploaded file, and alphas, but no other values.
 * @throws WeightsError if it is malformed, or something else than an adapter: the message says what
 */
export function readAdapter(file: string): Promise<Adapter> {
  return withAdapter(file, (adapter) => adapter);
}

/** The same, and the open file, for a call. */
export async function withAdapter<T>(
  file: string,
  use: (adapter: Adapter, source: ByteSource) => T | Promise<T>,
): Promise<T> {
  try {
    return await withFile(file, (source) => use(adapterOf(source, file), source));
  } catch (error) {
    if (error instanceof SafetensorsError) throw malformed(error.message);
    throw error;
  }
}

/** @param file path of what `source` has the bytes of */
export function adapterOf(source: ByteSource, file: string): Adapter {
  refusePickle(source);
  const { tensors, metadata } = readSafetensorsHeader(source);
  if (tensors.size === 0) throw malformed('The file holds no tensors.');
  const named = (key: string): NamedTensor => {
    const { dtype, shape, begin } = tensors.get(key)!;
    if (!['F64', 'F32', 'F16', 'BF16'].includes(dtype))
      throw malformed(`The tensor ${quote(key)} has the type ${dtype}; accepted are F64, F32, F16 and BF16.`);
    if (shape.includes(0)) throw malformed(`The tensor ${quote(key)} of shape ${shapeText(shape)} is empty.`);
    return { name: key, type: dtype as TensorType, shape, file, offset: begin };
  };
  if (isTextualInversion(tensors))
    return { kind: 'textual_inversion', layers: new Map(), words: readWords([...tensors.keys()], named), ...noScaling };
  const keys = [...tensors.keys()].filter((key) => !isBundledWord(key));
  refuseOtherFiles(keys);
  const layers = new Map<string, AdapterLayer & { factors: Map<Factor, NamedTensor> }>();
  const seen = new Map<string, string>();
  for (const key of keys) {
    const { layer: name, factor } = parseKey(key)!;
    const id = canonicalName(name);
    const before = seen.get(`${id}.${factor}`);
    if (before !== undefined) throw malformed(`The keys ${quote(before)} and ${quote(key)} are for the same layer.`);
    seen.set(`${id}.${factor}`, key);
    const layer = layers.get(id) ?? { key, factors: new Map<Factor, NamedTensor>() };
    layers.set(id, layer);
    if (factor === 'alpha') layer.alpha = readAlpha(source, tensors.get(key)!, key);
    else layer.factors.set(factor, named(key));
  }
  const words = readWords([...tensors.keys()].filter(isBundledWord), named);
  return { kind: 'lora', layers, words, scalingOf: readScaling(metadata) };
}

const noScaling = { scalingOf: () => undefined };

function readAlpha(source: ByteSource, info: SafetensorsInfo, key: string): number {
  const isNumber = info.shape.every((length) => length === 1) && !info.dtype.startsWith('F8');
  if (!isNumber) throw malformed(`The alpha ${quote(key)} is not a single number.`);
  const [value] = readFloats(source, info);
  if (!Number.isFinite(value)) throw malformed(`The alpha ${quote(key)} is not finite.`);
  return value;
}

/** @throws WeightsError for what torch.save writes; a safetensors file begins with a length, whose last bytes are 0 */
function refusePickle(source: ByteSource): void {
  const head = Array.from({ length: Math.min(8, source.size) }, (_, i) => source.byte(i));
  const isZip = String.fromCharCode(...head.slice(0, 4)) === 'PK\x03\x04';
  if (isZip || (head[0] === 0x80 && head.at(-1) !== 0))
    throw malformed('The file is a pickle of PyTorch, which runs code when it is read: convert it to safetensors.');
}

/** Reads every value of an adapter once. @throws WeightsError if one is not finite */
export function assertFinite({ layers, words }: Adapter, source: ByteSource): void {
  const ofLayers = [...layers.values()].flatMap(({ factors }) => [...factors.values()]);
  for (const tensor of [...ofLayers, ...words.flatMap(({ vectors }) => vectors.map((one) => one.tensor))]) {
    const { name, shape, offset: begin } = tensor;
    const dtype = tensor.type as NumberType;
    if (!isFiniteTensor(source, { dtype, shape: [...shape], begin, end: begin + byteLength(tensor) }))
      throw malformed(`The tensor ${quote(name)} has values that are not finite.`);
  }
}
