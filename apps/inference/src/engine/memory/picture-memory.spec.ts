import { modelWidths } from '@app/diffusion';
import { bytesPerRow, decodeBytes, encodeBytes, tileBytes } from './picture-memory';

const square = { width: 512, height: 512 };
const gigabytes = (bytes: number): number => bytes / 2 ** 30;
const megabytes = (bytes: number): number => bytes / 2 ** 20;
/** Folders without configurations are taken to be Stable Diffusion 1.x. */
const stable = { widths: modelWidths({ textEncoder: {}, unet: {}, vaeDecoder: {} }) };
/** As the bundled model's configurations say. */
const small = {
  widths: modelWidths({
    textEncoder: { hidden_size: 128, intermediate_size: 512, num_attention_heads: 4, max_position_embeddings: 77 },
    unet: {
      block_out_channels: [64, 128, 160],
      down_block_types: ['DownBlock2D', 'CrossAttnDownBlock2D', 'DownBlock2D'],
      attention_head_dim: 4,
    },
    vaeDecoder: { block_out_channels: [16, 24, 32, 64, 96, 128] },
  }),
};
const half = { ...stable, dtypes: { textEncoder: 'float16', unet: 'float16', vaeDecoder: 'float16' } as const };

describe(bytesPerRow.name, () => {
  it('expects a gigabyte of Stable Diffusion 1.x, of which 1.04 was measured, and megabytes of a small model', () => {
    expect(gigabytes(bytesPerRow(stable, square))).toBeGreaterThan(1.04);
    expect(gigabytes(bytesPerRow(stable, square))).toBeLessThan(1.5);
    expect(megabytes(bytesPerRow(small, square))).toBeLessThan(4);
  });

  it('counts the heads of the largest level that has attention', () => {
    const heads = (attention_head_dim: unknown) =>
      modelWidths({ textEncoder: {}, unet: { attention_head_dim }, vaeDecoder: {} });
    expect(heads([5, 10, 20, 20]).attention).toEqual({ heads: 5, level: 0 });
    expect(heads(8).attention).toEqual({ heads: 8, level: 0 });
    expect(small.widths.attention).toEqual({ heads: 4, level: 1 });
  });

  it('halves with float16', () => {
    expect(bytesPerRow(half, square)).toBe(bytesPerRow(stable, square) / 2);
  });
});

describe(decodeBytes.name, () => {
  it('expects more than the 1.1 gigabytes that were measured of Stable Diffusion 1.x, and little of a small model', () => {
    expect(gigabytes(decodeBytes(stable, square))).toBeGreaterThan(1.1);
    expect(gigabytes(decodeBytes(stable, square))).toBeLessThan(4);
    expect(megabytes(decodeBytes(small, square))).toBeGreaterThan(108);
    expect(megabytes(decodeBytes(small, square))).toBeLessThan(300);
  });

  it('grows with the picture, and halves with float16', () => {
    expect(decodeBytes(stable, { width: 512, height: 768 })).toBe(1.5 * decodeBytes(stable, square));
    expect(decodeBytes(half, square)).toBe(decodeBytes(stable, square) / 2);
  });
});

describe(encodeBytes.name, () => {
  it('expects more than the 5 and 197 megabytes that were measured of Stable Diffusion 1.x, and not many times as much', () => {
    expect(megabytes(encodeBytes(stable, 2))).toBeGreaterThan(4.7);
    expect(megabytes(encodeBytes(stable, 2))).toBeLessThan(10);
    expect(megabytes(encodeBytes(stable, 64))).toBeGreaterThan(197);
    expect(megabytes(encodeBytes(stable, 64))).toBeLessThan(400);
  });

  it('reads the widths of the text encoder, and halves with float16', () => {
    expect(encodeBytes(small, 1)).toBe(4 * (2 * 4 * 77 ** 2 + 3 * 77 * (128 + 512)));
    expect(encodeBytes(half, 2)).toBe(encodeBytes(stable, 2) / 2);
  });
});

describe(tileBytes.name, () => {
  it('expects more than the 62 and 254 megabytes that were measured of ESRGAN, and not many times as much', () => {
    const bytesOfEdge = (edge: number): number => megabytes(tileBytes({ width: edge, height: edge }, 4));
    expect(bytesOfEdge(64)).toBeGreaterThan(62);
    expect(bytesOfEdge(128)).toBeGreaterThan(254);
    expect(bytesOfEdge(128)).toBeLessThan(500);
  });
});
