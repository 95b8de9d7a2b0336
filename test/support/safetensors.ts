import type { SafetensorsDtype } from '../../libs/diffusion/src/safetensors/safetensors-header';
import { encodeFloat16 } from '../../libs/diffusion/src/tensor/half';

/** Values are float32 numbers, whatever the type. */
export interface TensorToWrite {
  shape: number[];
  values: ArrayLike<number>;
  dtype?: Extract<SafetensorsDtype, 'F32' | 'F16' | 'I8' | 'I32' | 'I64'>;
}

const encoders = {
  F32: (values: ArrayLike<number>) => Float32Array.from(values),
  F16: (values: ArrayLike<number>) => encodeFloat16(Float32Array.from(values)),
  I8: (values: ArrayLike<number>) => Int8Array.from(values),
  I32: (values: ArrayLike<number>) => Int32Array.from(values),
  I64: (values: ArrayLike<number>) => BigInt64Array.from(Array.from(values), BigInt),
};

/** The bytes of a safetensors file. */
export function encodeSafetensors(tensors: Record<string, TensorToWrite>, metadata?: Record<string, string>): Buffer {
  const header: Record<string, unknown> = metadata ? { __metadata__: metadata } : {};
  const parts: Uint8Array[] = [];
  let offset = 0;
  for (const [name, { shape, values, dtype = 'F32' }] of Object.entries(tensors)) {
    const typed = encoders[dtype](values);
    parts.push(new Uint8Array(typed.buffer, typed.byteOffset, typed.byteLength));
    header[name] = { dtype, shape, data_offsets: [offset, offset + typed.byteLength] };
    offset += typed.byteLength;
  }
  const text = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  return Buffer.concat([length, text, ...parts]);
}
