import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { limits } from '@app/domain';
import sharp from 'sharp';
import { decodePicture } from '../../libs/pictures/src/decode-picture';

/** Made by scripts/goldens/pictures_sent.py: what Pillow with LittleCMS sees. */
interface Sent {
  name: string;
  file: string;
  width: number;
  height: number;
  /** RGBA, upright, in sRGB. */
  pixels: string;
}
interface Mask {
  picture: [number, number];
  shape: [number, number];
  size: [number, number];
  file: string;
  /** A bit for each pixel that is repainted. */
  wanted: string;
}
interface Scaled {
  own: [number, number];
  size: [number, number];
  mode: string;
  file: string;
  /** RGB, on white. */
  wanted: string;
}
const golden = JSON.parse(gunzipSync(readFileSync(join(__dirname, 'pictures-sent/cases.json.gz'))).toString()) as {
  pictures: Sent[];
  masks: Mask[];
  scaled: Scaled[];
};

const most = limits.sentPicture;
const bytesOf = (text: string): Buffer => Buffer.from(text, 'base64');
/** What a rule makes of each pixel, and how far at most that is from what was found. */
function distance(found: Uint8Array, pixels: Buffer, rule: (r: number, g: number, b: number, a: number) => number[]) {
  let [far, at] = [0, 0];
  for (let i = 0; i < pixels.length; i += 4)
    for (const value of rule(pixels[i], pixels[i + 1], pixels[i + 2], pixels[i + 3]))
      far = Math.max(far, Math.abs(found[at++] - value));
  return at === found.length ? far : Infinity;
}

describe('Pictures that callers send', () => {
  const folder = mkdtempSync(join(tmpdir(), 'darkroom-sent-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  const names = golden.pictures.map((sent) => [sent.name, sent] as const);

  it.each(names)('are seen as Pillow sees them, as pictures and as masks: %s', async (_, sent) => {
    const [source, pixels] = [bytesOf(sent.file), bytesOf(sent.pixels)];
    const seen = await decodePicture({ source, most, to: 'rgb' });
    expect([seen.width, seen.height]).toEqual([sent.width, sent.height]);
    const onWhite = (value: number, alpha: number): number => 255 + ((value - 255) * alpha) / 255;
    const far = distance(seen.pixels!.data, pixels, (r, g, b, a) => [r, g, b].map((value) => onWhite(value, a)));
    expect(far).toBeLessThanOrEqual(2);
    const read = decodePicture({ source, most, to: 'mask', of: 'white' });
    const brightness = (r: number, g: number, b: number, a: number): number[] => [
      ((0.299 * r + 0.587 * g + 0.114 * b) * a) / 255,
    ];
    const black = new Uint8Array(pixels.length / 4);
    if (distance(black, pixels, brightness) >= 128)
      expect(distance((await read).pixels!.data, pixels, brightness)).toBeLessThanOrEqual(2);
    else await expect(read).rejects.toThrow('marks nothing: what is white is repainted');
    const open = decodePicture({ source, most, to: 'mask', of: 'transparent' });
    if (pixels.some((value, i) => i % 4 === 3 && value < 127))
      expect(distance((await open).pixels!.data, pixels, (r, g, b, a) => [255 - a])).toBeLessThanOrEqual(1);
    else await expect(open).rejects.toThrow(/has no alpha channel|marks nothing/);
  });

  it.each(names)('are stored so that the same is seen in them, and nothing is said: %s', async (_, sent) => {
    const [source, path] = [bytesOf(sent.file), join(folder, 'stored')];
    const stored = await decodePicture({ source, most, to: 'file', path });
    const file = readFileSync(path);
    const { format, exif, xmp, orientation, icc } = await sharp(file).metadata();
    expect([format, exif, xmp, orientation]).toEqual([stored.format, undefined, undefined, undefined]);
    const [first, again] = [
      await decodePicture({ source, most, to: 'rgb' }),
      await decodePicture({ source: file, most, to: 'rgb' }),
    ];
    expect([again.width, again.height]).toEqual([sent.width, sent.height]);
    expect(Buffer.from(again.pixels!.data).equals(first.pixels!.data)).toBe(true);
    const { format: before, icc: profile, orientation: way = 1 } = await sharp(source).metadata();
    if (way === 1) expect([format, icc]).toEqual([before, profile]);
  });

  it.each(golden.masks)('are stretched as masks onto $picture from $shape at $size', async (each) => {
    const [size, onto] = [each.size, each.picture].map(([width, height]) => ({ width, height }));
    const source = bytesOf(each.file);
    const wanted = bytesOf(each.wanted);
    const isWanted = (i: number): boolean => ((wanted[i >> 3] >> (7 - (i % 8))) & 1) === 1;
    const read = decodePicture({ source, most, to: 'mask', of: 'white', size, onto });
    if (wanted.every((byte) => byte === 0)) return expect(read).rejects.toThrow('marks nothing');
    const wrong = [...(await read).pixels!.data].filter((value, i) => value >= 128 !== isWanted(i));
    // Both scale in their own ways: pixels at the border of what is marked may differ.
    expect(wrong.length).toBeLessThan(0.02 * size.width * size.height);
  });

  it.each(golden.scaled)('are scaled from $own to $size, a picture of $mode', async ({ size, file, wanted }) => {
    const [width, height] = size;
    const { pixels } = await decodePicture({ source: bytesOf(file), most, to: 'rgb', size: { width, height } });
    const far = bytesOf(wanted).map((value, i) => Math.abs(value - pixels!.data[i]));
    expect(pixels!.data).toHaveLength(far.length);
    // What is transparent is scaled in its own way where it becomes smaller.
    expect(Math.max(...far)).toBeLessThanOrEqual(3);
  });
});
