/**
 * Values of GGUF's block types. A block has a scale, for some types a minimum, and small whole numbers.
 * Source: `ggml-quants.c` of ggml, whose names of fields these are.
 */
import { decodeFloat16 } from '../tensor/half';

interface BlockType {
  /** Values of a block. */
  values: number;
  /** Bytes of a block. */
  bytes: number;
  /** Writes the values of the block that begins at `at`. */
  decode: (block: Block, at: number, values: Float32Array) => void;
}

/** The bytes of blocks, and the numbers in them. */
class Block {
  private readonly view: DataView;

  constructor(readonly bytes: Uint8Array) {
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  half(at: number): number {
    return decodeFloat16(Uint16Array.of(this.view.getUint16(at, true)))[0];
  }

  signed(at: number): number {
    return this.view.getInt8(at);
  }

  /** Bit `i` of the bytes from `at` on. */
  bit(at: number, i: number): number {
    return (this.bytes[at + (i >> 3)] >> (i & 7)) & 1;
  }
}

/** 32 numbers of four or five bits: the lower halves of 16 bytes, then the upper ones. */
function decodeNibbles(hasMinimum: boolean, hasFifthBit: boolean): BlockType['decode'] {
  const zero = hasMinimum ? 0 : hasFifthBit ? 16 : 8;
  const [qh, qs] = hasMinimum ? [4, hasFifthBit ? 8 : 4] : [2, hasFifthBit ? 6 : 2];
  return (block, at, values) => {
    const d = block.half(at);
    const m = hasMinimum ? block.half(at + 2) : 0;
    for (let i = 0; i < 32; i++) {
      const fifth = hasFifthBit ? block.bit(at + qh, i) << 4 : 0;
      const q = ((block.bytes[at + qs + (i & 15)] >> (i < 16 ? 0 : 4)) & 15) | fifth;
      values[i] = d * (q - zero) + m;
    }
  };
}

/** 256 numbers of four or five bits in 8 groups with a scale and a minimum of six bits each. */
function decodeSuperBlock(hasFifthBit: boolean): BlockType['decode'] {
  const qh = 16;
  const qs = hasFifthBit ? 48 : 16;
  return (block, at, values) => {
    const { bytes } = block;
    const [d, dmin] = [block.half(at), block.half(at + 2)];
    const scales = at + 4;
    for (let group = 0; group < 8; group++) {
      const low = scales + group;
      const [scale, minimum] =
        group < 4
          ? [bytes[low] & 63, bytes[low + 4] & 63]
          : [(bytes[low + 4] & 15) | ((bytes[low - 4] >> 6) << 4), (bytes[low + 4] >> 4) | ((bytes[low] >> 6) << 4)];
      for (let i = 0; i < 32; i++) {
        const nibble = (bytes[at + qs + 32 * (group >> 1) + i] >> (4 * (group & 1))) & 15;
        const q = hasFifthBit ? nibble | (((bytes[at + qh + i] >> group) & 1) << 4) : nibble;
        values[32 * group + i] = d * scale * q - dmin * minimum;
      }
    }
  };
}

/** 256 numbers of six bits in 16 groups with a scale of eight bits each. */
function decodeSixBits(block: Block, at: number, values: Float32Array): void {
  const { bytes } = block;
  const [qh, scales] = [at + 128, at + 192];
  const d = block.half(at + 208);
  for (let i = 0; i < 256; i++) {
    const [half, quarter, l] = [i >> 7, (i >> 5) & 3, i & 31];
    const low = (bytes[at + 64 * half + 32 * (quarter & 1) + l] >> (4 * (quarter >> 1))) & 15;
    const high = (bytes[qh + 32 * half + l] >> (2 * quarter)) & 3;
    values[i] = d * block.signed(scales + (i >> 4)) * ((low | (high << 4)) - 32);
  }
}

function decodeBytes(block: Block, at: number, values: Float32Array): void {
  const d = block.half(at);
  for (let i = 0; i < 32; i++) values[i] = d * block.signed(at + 2 + i);
}

export const blockTypes = {
  Q4_0: { values: 32, bytes: 18, decode: decodeNibbles(false, false) },
  Q4_1: { values: 32, bytes: 20, decode: decodeNibbles(true, false) },
  Q5_0: { values: 32, bytes: 22, decode: decodeNibbles(false, true) },
  Q5_1: { values: 32, bytes: 24, decode: decodeNibbles(true, true) },
  Q8_0: { values: 32, bytes: 34, decode: decodeBytes },
  Q4_K: { values: 256, bytes: 144, decode: decodeSuperBlock(false) },
  Q5_K: { values: 256, bytes: 176, decode: decodeSuperBlock(true) },
  Q6_K: { values: 256, bytes: 210, decode: decodeSixBits },
} as const satisfies Record<string, BlockType>;

export type BlockTypeName = keyof typeof blockTypes;

export const isBlockType = (type: string): type is BlockTypeName => type in blockTypes;

/** The values of whole blocks, as float32. */
export function decodeBlocks(type: BlockTypeName, bytes: Uint8Array): Float32Array {
  const { values: count, bytes: length, decode } = blockTypes[type];
  const block = new Block(bytes);
  const values = new Float32Array((bytes.length / length) * count);
  for (let i = 0; i * count < values.length; i++)
    decode(block, i * length, values.subarray(i * count, (i + 1) * count));
  return values;
}
