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

/** The part of such a file before the values, which may be written one after the other. */
export function safetensorsHeader(
  tensors: ReadonlyMap<string, Pick<FloatTensor, 'shape'>>,
  metadata: Readonly<Record<string, string>> = {},
): Buffer {
  let end = 0;
  const header: Record<string, unknown> = { __metadata__: metadata };
  for (const [name, { shape }] of tensors) {
    const begin = end;
    end += Float32Array.BYTES_PER_ELEMENT * shape.reduce((count, length) => count * length, 1);
    header[name] = { dtype: 'F32', shape, data_offsets: [begin, end] };
  }
  const json = JSON.stringify(header);
  // Values begin at a multiple of eight bytes, of which there are more than letters in the text.
  const text = Buffer.from(json + ' '.repeat((8 - (Buffer.byteLength(json) % 8)) % 8));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  return Buffer.concat([length, text]);
}
