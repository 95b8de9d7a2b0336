import { open } from 'node:fs/promises';
import { rotate } from '../tensor/hadamard';
import { decodeBfloat16, decodeE4m3, decodeFloat16 } from '../tensor/half';

/** Element types of weights: bytes of an element and TensorProto.DataType. Other types are not read. */
export const tensorTypes = {
  F64: { bytes: 8, onnx: 11 },
  F32: { bytes: 4, onnx: 1 },
  F16: { bytes: 2, onnx: 10 },
  BF16: { bytes: 2, onnx: 16 },
  F8_E4M3: { bytes: 1, onnx: 17 },
  F8_E5M2: { bytes: 1, onnx: 19 },
  I8: { bytes: 1, onnx: 3 },
} as const;

export type TensorType = keyof typeof tensorTypes;

/** A weight where it lies in a file: nothing is loaded to describe it. */
export interface NamedTensor {
  /** Its name in the file, for messages. */
  name: string;
  type: TensorType;
  /** As PyTorch has it: [out, in] of a linear layer, [out, in, height, width] of a convolution. */
  shape: readonly number[];
  /** Whether the two axes of a matrix are stored in the other order. */
  isTransposed?: boolean;
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

export const countOf = (shape: readonly number[]): number => shape.reduce((product, length) => product * length, 1);

export const byteLength = ({ type, shape }: NamedTensor): number => countOf(shape) * tensorTypes[type].bytes;

/** Rows `begin` to `end` of a tensor, which are a range of its bytes. */
export function rowsOf(tensor: NamedTensor, begin: number, end: number): NamedTensor {
  const [, ...rest] = tensor.shape;
  const rowBytes = countOf(rest) * tensorTypes[tensor.type].bytes;
  const int8 = tensor.int8 && { ...tensor.int8, scale: rowsOf(tensor.int8.scale, begin, end) };
  const shape = [end - begin, ...rest];
  return { ...tensor, shape, offset: tensor.offset + begin * rowBytes, ...(int8 && { int8 }) };
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
  const bytes = await readBytes(tensor, 0, byteLength(tensor));
  const { buffer } = bytes;
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
