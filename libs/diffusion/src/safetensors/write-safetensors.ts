import { elementSizes, type SafetensorsDtype } from './safetensors-header';

/** A tensor in memory. */
export interface FloatTensor {
  shape: readonly number[];
  values: Float32Array;
}

/**
 * A safetensors file of float32 tensors, in their order.
 * @param metadata texts to keep in the header
 */
export function writeSafetensors(
  tensors: ReadonlyMap<string, FloatTensor>,
  metadata: Readonly<Record<string, string>> = {},
): Buffer {
  const bytesOf = ({ buffer, byteOffset, byteLength }: Float32Array): Uint8Array =>
    new Uint8Array(buffer, byteOffset, byteLength);
  return Buffer.concat([
    safetensorsHeader(tensors, metadata),
    ...[...tensors.values()].map(({ values }) => bytesOf(values)),
  ]);
}

/** The part of a file before the values, which may be written one after the other; by default in float32. */
export function safetensorsHeader(
  tensors: ReadonlyMap<string, { shape: readonly number[]; dtype?: SafetensorsDtype }>,
  metadata: Readonly<Record<string, string>> = {},
): Buffer {
  let end = 0;
  const header: Record<string, unknown> = { __metadata__: metadata };
  for (const [name, { shape, dtype = 'F32' }] of tensors) {
    const begin = end;
    end += elementSizes[dtype] * shape.reduce((count, length) => count * length, 1);
    header[name] = { dtype, shape, data_offsets: [begin, end] };
  }
  const json = JSON.stringify(header);
  // Values begin at a multiple of eight bytes, of which there are more than letters in the text.
  const text = Buffer.from(json + ' '.repeat((8 - (Buffer.byteLength(json) % 8)) % 8));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  return Buffer.concat([length, text]);
}
