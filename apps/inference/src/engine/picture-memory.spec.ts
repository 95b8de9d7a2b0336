import { modelWidths } from '@app/diffusion';
import { bytesPerRow, decodeBytes } from './picture-memory';

const square = { width: 512, height: 512 };
const gigabytes = (bytes: number): number => bytes / 2 ** 30;
const megabytes = (bytes: number): number => bytes / 2 ** 20;
/** Folders without configurations are taken to be Stable Diffusion 1.x. */
const stable = { widths: modelWidths({ unet: {}, vaeDecoder: {} }) };
/** As the bundled model's configurations say. */
const small = {
  widths: modelWidths({
    unet: {
      block_out_channels: [64, 128, 160],
      down_block_types: ['DownBlock2D', 'CrossAttnDownBlock2D', 'DownBlock2D'],
      attention_head_dim: 4,
    },
    vaeDecoder: { block_out_channels: [16, 24, 32, 64, 96, 128] },
  }),
};
const half = { ...stable, dtypes: { unet: 'float16', vaeDecoder: 'float16' } as const };

describe(bytesPerRow.name, () => {
  it('expects a gigabyte of Stable Diffusion 1.x, of which 1.04 was measured, and megabytes of a small model', () => {
    expect(gigabytes(bytesPerRow(stable, square))).toBeGreaterThan(1.04);
    expect(gigabytes(bytesPerRow(stable, square))).toBeLessThan(1.5);
    expect(megabytes(bytesPerRow(small, square))).toBeLessThan(4);
  });

  it('counts the heads of the largest level that has attention', () => {
    const heads = (attention_head_dim: unknown) => modelWidths({ unet: { attention_head_dim }, vaeDecoder: {} });
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
