import { type ByteSource, FileEndError } from '../tensor/byte-source';
import { decodeBfloat16, decodeFloat16 } from '../tensor/half';
import { elementSizes, type SafetensorsDtype, SafetensorsError, type SafetensorsInfo } from './safetensors-header';

/** The arrays of each element type. F16 and BF16 are kept as their 16 bits: Node 20 has no typed array for them. */
const arrays = {
  F64: Float64Array,
  F32: Float32Array,
  F16: Uint16Array,
  BF16: Uint16Array,
  F8_E4M3: Uint8Array,
  F8_E5M2: Uint8Array,
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

/** Values are read in pieces of this size, which bounds memory whatever the tensor's size. */
const PIECE_BYTES = 4 * 1024 * 1024;

/**
 * The values of one tensor, row-major; F16 and BF16 as their bits. @throws SafetensorsError if the file became shorter.
 */
export function readArray(source: ByteSource, { dtype, begin, end }: SafetensorsInfo): SafetensorsArray {
  return new arrays[dtype](copy(source, begin, end).buffer);
}

/** The values of one tensor as float32: exact for F16, BF16 and small integers, rounded for F64 and large integers. */
export function readFloats(source: ByteSource, info: SafetensorsInfo): Float32Array {
  const stored = readArray(source, info);
  if (stored instanceof Float32Array) return stored;
  if (info.dtype === 'F16') return decodeFloat16(stored as Uint16Array);
  if (info.dtype === 'BF16') return decodeBfloat16(stored as Uint16Array);
  const values = new Float32Array(stored.length);
  for (let i = 0; i < stored.length; i++) values[i] = Number(stored[i]);
  return values;
}

/** Whether every value of a floating-point tensor is a finite float32, in one pass over its bytes. */
export function isFiniteTensor(source: ByteSource, { dtype, begin, end }: SafetensorsInfo): boolean {
  const piece = PIECE_BYTES - (PIECE_BYTES % elementSizes[dtype]);
  for (let at = begin; at < end; at += piece) {
    const { buffer } = copy(source, at, Math.min(at + piece, end));
    if (!areFinite(dtype, buffer)) return false;
  }
  return true;
}

/** An exponent with all bits set is an infinity or NaN. */
function areFinite(dtype: SafetensorsDtype, buffer: ArrayBuffer): boolean {
  if (dtype === 'F64') return new Float64Array(buffer).every((value) => Number.isFinite(Math.fround(value)));
  const bits = dtype === 'F32' ? new Uint32Array(buffer) : new Uint16Array(buffer);
  const exponent = dtype === 'F32' ? 0x7f800000 : dtype === 'F16' ? 0x7c00 : 0x7f80;
  for (let i = 0; i < bits.length; i++) if ((bits[i] & exponent) === exponent) return false;
  return true;
}

/** Copies bytes to a buffer of their own, which is aligned for typed arrays of any element. */
function copy(source: ByteSource, begin: number, end: number): Uint8Array<ArrayBuffer> {
  try {
    return new Uint8Array(source.bytes(begin, end));
  } catch (error) {
    if (error instanceof FileEndError) throw new SafetensorsError('The file ends inside a tensor.');
    throw error;
  }
}
