import { readFileSync } from 'node:fs';
import sharp from 'sharp';
import { decodePicture } from './decode-picture';
import { referenceSize } from './reference-size';

/** Recorded by scripts/goldens/references.py, each with width and height. */
const sizes = JSON.parse(readFileSync('test/golden/references/sizes.json', 'utf8')) as Record<
  'sent' | 'scaled' | 'seen',
  [number, number]
>[];

describe('A picture that a model looks at', () => {
  it.each(sizes)('of $sent is scaled to $scaled and cut to $seen, as diffusers does', ({ sent, scaled, seen }) => {
    const found = referenceSize({ width: sent[0], height: sent[1] });
    expect([found.scaled.width, found.scaled.height]).toEqual(scaled);
    expect([found.part.width, found.part.height]).toEqual(seen);
  });

  it.each([
    [63, 200, /at least 64 on each edge/],
    [64, 513, /at most 8 on one edge for each on the other/],
  ])('of %i x %i is refused', (width, height, message) => {
    expect(() => referenceSize({ width, height })).toThrow(message);
  });

  it('keeps the pixels of its middle, and its shape', async () => {
    const [width, height] = [101, 70];
    const data = Uint8Array.from({ length: width * height * 3 }, (_, i) => (i * 7) % 256);
    const source = await sharp(data, { raw: { width, height, channels: 3 } })
      .png()
      .toBuffer();
    const most = { pixels: 1e6, edge: 1000, ratio: 10 };
    const { pixels } = await decodePicture({ source, most, to: 'reference' });
    expect(pixels).toMatchObject({ width: 96, height: 64 });
    const row = (3 * width + 2) * 3;
    expect([...pixels!.data.subarray(0, 96 * 3)]).toEqual([...data.subarray(row, row + 96 * 3)]);
  });

  it('is scaled down from what is larger', async () => {
    const source = await sharp({ create: { width: 2000, height: 1000, channels: 3, background: '#336699' } })
      .png()
      .toBuffer();
    const { pixels } = await decodePicture({
      source,
      most: { pixels: 1e7, edge: 5000, ratio: 10 },
      to: 'reference',
    });
    expect(pixels).toMatchObject({ width: 1440, height: 720 });
    expect([...pixels!.data.subarray(0, 3)]).toEqual([0x33, 0x66, 0x99]);
  });
});
