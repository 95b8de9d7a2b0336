import { open } from 'node:fs/promises';
import { type BlockTypeName, blockTypes, decodeBlocks, isBlockType } from '../gguf/blocks';
import { rotate } from '../tensor/hadamard';
import { decodeBfloat16, decodeE4m3, decodeFloat16 } from '../tensor/half';

/** Bytes of an element of a block. */
const inBlocks = <Type extends BlockTypeName>(type: Type) => ({
  bytes: blockTypes[type].bytes / blockTypes[type].values,
  // No graph has them: they are written in another type before.
  onnx: 0,
});

/** Element types of weights: bytes of an element and TensorProto.DataType. Other types are not read. */
export const tensorTypes = {
  F64: { bytes: 8, onnx: 11 },
  F32: { bytes: 4, onnx: 1 },
  F16: { bytes: 2, onnx: 10 },
  BF16: { bytes: 2, onnx: 16 },
  F8_E4M3: { bytes: 1, onnx: 17 },
  F8_E5M2: { bytes: 1, onnx: 19 },
  I8: { bytes: 1, onnx: 3 },
  Q4_0: inBlocks('Q4_0'),
  Q4_1: inBlocks('Q4_1'),
  Q5_0: inBlocks('Q5_0'),
  Q5_1: inBlocks('Q5_1'),
  Q8_0: inBlocks('Q8_0'),
  Q4_K: inBlocks('Q4_K'),
  Q5_K: inBlocks('Q5_K'),
  Q6_K: inBlocks('Q6_K'),
} as const;

export type TensorType = keyof typeof tensorTypes;
/** Types of a number by itself, as safetensors has them. */
export type NumberType = Exclude<TensorType, BlockTypeName>;

/** A weight where it lies in a file: nothing is loaded to describe it. */
export interface NamedTensor {
  /** Its name in the file, for messages. */
  name: string;
  type: TensorType;
  /** As PyTorch has it: [out, in] of a linear layer, [out, in, height, width] of a convolution. */
  shape: readonly number[];
  /** Whether the two axes of a matrix are stored in the other order. */
  isTransposed?: boolean;
  /** Whether the two halves of its rows are stored in the other order. */
  isSwapped?: boolean;
  /** What its numbers are multiplied with, one for all or one for each row: of float8. */
  scale?: NamedTensor;
  /** Of a linear layer in int8, which is stored for each output as whole numbers of -127 to 127. */
  int8?: Int8Form;
  /** Path of the file, and where the little-endian values begin in it. */
  file: string;
  offset: number;
}

/** How the weight of a linear layer in int8 is to be read. */
export interface Int8Form {
  /** What the numbers of each output are multiplied with, [out] in float32. */
  scale: NamedTensor;
  /** Inputs of a block that is rotated, so that the layer's input has to be rotated too; 1 is none. */
  rotation: number;
}

export type NamedTensors = ReadonlyMap<string, NamedTensor>;

/** A model's files are damaged or are none that can be read; the message is one plain sentence. */
export class WeightsFileError extends Error {
  override name = 'WeightsFileError';

  /** @param file path of the file at fault, where it is one of several */
  constructor(
    message: string,
    readonly file?: string,
  ) {
    super(message);
  }
}

/** Numbers are in a form that is not read. */
export class UnknownFormError extends WeightsFileError {}

export const countOf = (shape: readonly number[]): number => shape.reduce((product, length) => product * length, 1);

export const byteLength = ({ type, shape }: NamedTensor): number => countOf(shape) * tensorTypes[type].bytes;

/** Rows `begin` to `end` of a tensor, which are a range of its bytes. */
export function rowsOf(tensor: NamedTensor, begin: number, end: number): NamedTensor {
  const [, ...rest] = tensor.shape;
  const rowBytes = countOf(rest) * tensorTypes[tensor.type].bytes;
  const int8 = tensor.int8 && { ...tensor.int8, scale: rowsOf(tensor.int8.scale, begin, end) };
  const scale = tensor.scale && (isOfRows(tensor) ? rowsOf(tensor.scale, begin, end) : tensor.scale);
  const shape = [end - begin, ...rest];
  const offset = tensor.offset + begin * rowBytes;
  return { ...tensor, shape, offset, ...(int8 && { int8 }), ...(scale && { scale }) };
}

/** Whether each row has a scale of its own. */
const isOfRows = ({ scale }: NamedTensor): boolean => scale !== undefined && countOf(scale.shape) > 1;

/** The rows of a tensor as ranges of its bytes, in their order. */
export function stretchesOf({ isSwapped, ...tensor }: NamedTensor): NamedTensor[] {
  const { shape } = tensor;
  return isSwapped ? [rowsOf(tensor, shape[0] / 2, shape[0]), rowsOf(tensor, 0, shape[0] / 2)] : [tensor];
}

/** The tensors whose names begin with `prefix`, without it. */
export function tensorsBelow(tensors: NamedTensors, prefix: string): NamedTensors {
  const below = [...tensors].filter(([name]) => name.startsWith(prefix));
  return new Map(below.map(([name, tensor]) => [name.slice(prefix.length), tensor]));
}

/** Bytes `begin` to `end` of a tensor as they are stored. */
export async function readBytes({ file: path, name, offset }: NamedTensor, begin: number, end: number) {
  const bytes = new Uint8Array(end - begin);
  const file = await open(path, 'r');
  try {
    const { bytesRead } = await file.read(bytes, 0, bytes.length, offset + begin);
    if (bytesRead !== bytes.length) throw new WeightsFileError(`${path} ends inside the tensor ${name}.`);
  } finally {
    await file.close();
  }
  return bytes;
}

/** The values of a tensor as float32, in the order in which they are stored. */
export async function readValues(tensor: NamedTensor): Promise<Float32Array> {
  const values = await readNumbers(tensor);
  if (!tensor.scale) return values;
  const scales = await readValues(tensor.scale);
  const width = values.length / scales.length;
  for (let i = 0; i < values.length; i++) values[i] *= scales[Math.floor(i / width)];
  return values;
}

async function readNumbers(tensor: NamedTensor): Promise<Float32Array> {
  const bytes = await readBytes(tensor, 0, byteLength(tensor));
  const { buffer } = bytes;
  if (isBlockType(tensor.type)) return decodeBlocks(tensor.type, bytes);
  if (tensor.type === 'F32') return new Float32Array(buffer);
  if (tensor.type === 'F64') return Float32Array.from(new Float64Array(buffer));
  if (tensor.type === 'F16') return decodeFloat16(new Uint16Array(buffer));
  if (tensor.type === 'BF16') return decodeBfloat16(new Uint16Array(buffer));
  if (tensor.int8) return readInt8(new Int8Array(buffer), tensor, tensor.int8);
  // Numbers of five exponent bits are the upper halves of float16.
  if (tensor.type === 'F8_E5M2') return decodeFloat16(Uint16Array.from(bytes, (bits) => bits << 8));
  return Float32Array.from(bytes, decodeE4m3);
}

async function readInt8(stored: Int8Array, { shape }: NamedTensor, { scale, rotation }: Int8Form) {
  const scales = await readValues(scale);
  const values = Float32Array.from(stored);
  const width = shape[1];
  for (let i = 0; i < values.length; i++) values[i] *= scales[Math.floor(i / width)];
  rotate(values, rotation);
  return values;
}
