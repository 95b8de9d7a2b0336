import { closeSync, fstatSync, openSync } from 'node:fs';
import { decodeBfloat16, decodeFloat16 } from '../tensor/half';
import { BufferSource, FileSource, ProtobufError } from '../onnx/protobuf';
import type { ByteSource } from '../onnx/protobuf';
import { elementSizes, readSafetensorsHeader } from './safetensors-header';
import type { SafetensorsDtype, SafetensorsInfo } from './safetensors-header';
import { SafetensorsError } from './safetensors-scan';

/** The arrays of each element type. F16 and BF16 are kept as their 16 bits: Node 20 has no typed array for them. */
const arrays = {
  F64: Float64Array,
  F32: Float32Array,
  F16: Uint16Array,
  BF16: Uint16Array,
  I64: BigInt64Array,
  U64: BigUint64Array,
  I32: Int32Array,
  U32: Uint32Array,
  I16: Int16Array,
  U16: Uint16Array,
  I8: Int8Array,
  U8: Uint8Array,
  BOOL: Uint8Array,
} as const satisfies Record<SafetensorsDtype, unknown>;

type SafetensorsArray = InstanceType<(typeof arrays)[SafetensorsDtype]>;

/** One tensor with its values, row-major. F16 and BF16 values are raw bits: see {@link toFloat32}. */
export interface SafetensorsEntry {
  dtype: SafetensorsDtype;
  shape: number[];
  data: SafetensorsArray;
}

/** Values are looked at in pieces of this size, so that memory stays flat whatever the tensor's. */
const PIECE_BYTES = 4 * 1024 * 1024;

/** Lends a file's bytes for the time of a call. */
export async function withFile<T>(path: string, use: (source: ByteSource) => T | Promise<T>): Promise<T> {
  const file = openSync(path, 'r');
  try {
    return await use(new FileSource(file, fstatSync(file).size));
  } finally {
    closeSync(file);
  }
}

/** Every tensor of a file's bytes. @throws SafetensorsError if they are not well-formed. */
export function readSafetensorsSync(bytes: Buffer): Map<string, SafetensorsEntry> {
  const source = new BufferSource(bytes);
  const { tensors } = readSafetensorsHeader(source);
  return new Map([...tensors].map(([name, info]) => [name, readTensor(source, info)]));
}

/** @throws SafetensorsError if the file is shorter than it was. */
export function readTensor(source: ByteSource, info: SafetensorsInfo): SafetensorsEntry {
  const { dtype, shape, begin, end } = info;
  return { dtype, shape, data: new arrays[dtype](copy(source, begin, end).buffer) };
}

/** The values of one tensor as float32. */
export function readFloats(source: ByteSource, info: SafetensorsInfo): Float32Array {
  return toFloat32(readTensor(source, info));
}

/** The values as float32: exact for F16, BF16 and small integers, rounded for F64 and large integers. */
export function toFloat32(entry: SafetensorsEntry): Float32Array {
  const { dtype, data } = entry;
  if (data instanceof Float32Array) return data;
  if (dtype === 'F16') return decodeFloat16(data as Uint16Array);
  if (dtype === 'BF16') return decodeBfloat16(data as Uint16Array);
  const values = new Float32Array(data.length);
  for (let i = 0; i < data.length; i++) values[i] = Number(data[i]);
  return values;
}

/** Whether every value of a floating-point tensor is a finite float32, found in one pass over its bytes. */
export function isFiniteTensor(source: ByteSource, { dtype, begin, end }: SafetensorsInfo): boolean {
  const piece = PIECE_BYTES - (PIECE_BYTES % elementSizes[dtype]);
  for (let at = begin; at < end; at += piece) {
    const { buffer } = copy(source, at, Math.min(at + piece, end));
    if (!areFinite(dtype, buffer)) return false;
  }
  return true;
}

/** An exponent of all ones is an infinity or no number. */
function areFinite(dtype: SafetensorsDtype, buffer: ArrayBuffer): boolean {
  if (dtype === 'F64') return new Float64Array(buffer).every((value) => Number.isFinite(Math.fround(value)));
  const bits = dtype === 'F32' ? new Uint32Array(buffer) : new Uint16Array(buffer);
  const exponent = dtype === 'F32' ? 0x7f800000 : dtype === 'F16' ? 0x7c00 : 0x7f80;
  for (let i = 0; i < bits.length; i++) if ((bits[i] & exponent) === exponent) return false;
  return true;
}

/** Bytes in a buffer of their own, which a typed array of any element can lie over. */
function copy(source: ByteSource, begin: number, end: number): Uint8Array<ArrayBuffer> {
  try {
    return new Uint8Array(source.bytes(begin, end));
  } catch (error) {
    if (error instanceof ProtobufError) throw new SafetensorsError('The file ends inside a tensor.');
    throw error;
  }
}
