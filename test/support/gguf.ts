import { type BlockTypeName, blockTypes } from '../../libs/diffusion/src/gguf/blocks';
import { encodeFloat16 } from '../../libs/diffusion/src/tensor/half';

/** A tensor of a GGUF file; `shape` has the outermost axis first. */
export interface GgufTensor {
  type: keyof typeof typeNumbers;
  shape: readonly number[];
  bytes: Uint8Array;
}

const typeNumbers = { F32: 0, F16: 1, Q4_0: 2, Q8_0: 8, Q2_K: 10, Q4_K: 12, BF16: 30 };
const alignment = 32;

const uint32 = (value: number): Buffer => Buffer.from(Uint32Array.of(value).buffer);
const uint64 = (value: number | bigint): Buffer => Buffer.from(BigUint64Array.of(BigInt(value)).buffer);
const text = (value: string): Buffer => Buffer.concat([uint64(Buffer.byteLength(value)), Buffer.from(value)]);

/** The bytes of a GGUF file. @param metadata texts, and numbers as float32 */
export function encodeGguf(
  tensors: ReadonlyMap<string, GgufTensor>,
  metadata: Readonly<Record<string, string | number>> = {},
): Buffer {
  const pairs = Object.entries(metadata).map(([key, value]) => [
    text(key),
    ...(typeof value === 'string' ? [uint32(8), text(value)] : [uint32(6), Buffer.from(Float32Array.of(value).buffer)]),
  ]);
  let end = 0;
  const infos: Buffer[] = [];
  const data: Uint8Array[] = [];
  for (const [name, { type, shape, bytes }] of tensors) {
    const lengths = shape.toReversed().map(uint64);
    infos.push(text(name), uint32(shape.length), ...lengths, uint32(typeNumbers[type]), uint64(end));
    const padding = (alignment - (bytes.length % alignment)) % alignment;
    data.push(bytes, new Uint8Array(padding));
    end += bytes.length + padding;
  }
  const counts = [uint64(tensors.size), uint64(pairs.length)];
  const header = Buffer.concat([Buffer.from('GGUF'), uint32(3), ...counts, ...pairs.flat(), ...infos]);
  const padding = new Uint8Array((alignment - (header.length % alignment)) % alignment);
  return Buffer.concat([header, padding, ...data]);
}

/** Values in blocks of 32 numbers with one scale. */
export function quantised(type: Extract<BlockTypeName, 'Q8_0' | 'Q4_0'>, values: Float32Array): Uint8Array {
  const { values: count, bytes } = blockTypes[type];
  const most = type === 'Q8_0' ? 127 : 7;
  const blocks = Buffer.alloc((values.length / count) * bytes);
  for (let block = 0; block * count < values.length; block++) {
    const own = values.subarray(block * count, (block + 1) * count);
    const scale = Math.max(...own.map(Math.abs)) / most;
    const at = block * bytes;
    blocks.writeUInt16LE(encodeFloat16(Float32Array.of(scale))[0], at);
    for (const [i, value] of own.entries()) {
      const number = scale > 0 ? Math.round(value / scale) : 0;
      if (type === 'Q8_0') blocks.writeInt8(number, at + 2 + i);
      else blocks[at + 2 + (i % 16)] |= (number + 8) << (i < 16 ? 0 : 4);
    }
  }
  return blocks;
}
