import { crc32 } from 'node:zlib';
import sharp from 'sharp';
import {
  type EncodedPicture,
  encodePicture,
  encodeStyleThumbnail,
  encodeThumbnail,
  type PictureParameters,
} from './image-encoder';

const parameters: PictureParameters = {
  prompt: 'ein roter Kreis – 赤い円 🔴 "quoted"',
  negative_prompt: null,
  seed: 4_294_967_295,
  cfg: 7.5,
  steps: 30,
  scheduler: 'pndm',
  width: 24,
  height: 16,
  model: 'shapes',
  model_hash: 'abc',
  version: '0.1.0',
};

/** Every pixel differs, so that swapped rows or channels are detected. */
const picture = {
  width: 24,
  height: 16,
  data: Uint8Array.from({ length: 24 * 16 * 3 }, (_, i) => (i * 7) % 256),
};

const composite = 'compositeWithTrainedAlgorithmicMedia';

const join = (file: EncodedPicture): Buffer => Buffer.concat(file.parts);

function* chunksOf(png: Buffer): Generator<{ type: string; data: Buffer }> {
  for (let at = 8; at < png.length;) {
    const length = png.readUInt32BE(at);
    const typed = png.subarray(at + 4, at + 8 + length);
    expect(png.readUInt32BE(at + 8 + length)).toBe(crc32(typed));
    yield { type: typed.toString('latin1', 0, 4), data: typed.subarray(4) };
    at += 12 + length;
  }
}

describe('encodePicture', () => {
  it('writes a PNG that decodes to the same pixels', async () => {
    const file = await encodePicture(picture, 'png', parameters);
    const { data, info } = await sharp(join(file)).raw().toBuffer({ resolveWithObject: true });
    expect(info).toMatchObject({ width: 24, height: 16, channels: 3 });
    expect(Buffer.compare(data, Buffer.from(picture.data))).toBe(0);
    expect(file).toMatchObject({ contentType: 'image/png', extension: 'png', bytes: join(file).length });
  });

  it('keeps the parameters of a PNG in a valid iTXt chunk behind the header', async () => {
    const chunks = [...chunksOf(join(await encodePicture(picture, 'png', parameters)))];
    expect(chunks.map(({ type }) => type).slice(0, 2)).toEqual(['IHDR', 'iTXt']);
    const keywords = chunks.flatMap(({ type, data }) =>
      type === 'iTXt' ? [data.toString('latin1').split('\0')[0]] : [],
    );
    expect(keywords).toEqual(['parameters', 'XML:com.adobe.xmp']);
    const text = chunks[1].data;
    const end = text.indexOf(0);
    expect(text.toString('latin1', 0, end)).toBe('parameters');
    expect([...text.subarray(end, end + 5)]).toEqual([0, 0, 0, 0, 0]);
    expect(JSON.parse(text.toString('utf8', end + 5))).toEqual(parameters);
  });

  it.each(['jpeg', 'webp'] as const)('keeps the parameters of a %s in its EXIF', async (format) => {
    const file = await encodePicture(picture, format, parameters);
    const metadata = await sharp(join(file)).metadata();
    expect(metadata).toMatchObject({ format, width: 24, height: 16 });
    const exif = metadata.exif?.toString('latin1') ?? '';
    const found = [...exif.matchAll(/\{[^{}]*\}/g)].map(([json]) => JSON.parse(json) as unknown);
    expect(found).toEqual([parameters, parameters]);
  });

  it.each([
    ['once where both places are too much', { prompt: 'a'.repeat(32_000) }, {}],
    ['of a picture that is nowhere too much', { prompt: 'a'.repeat(30_000), negative_prompt: 'b'.repeat(30_000) }, {}],
    [
      'with the beginnings of its texts',
      { prompt: '円'.repeat(32_000), negative_prompt: '\u0001'.repeat(32_000) },
      { prompt: `${'円'.repeat(4_000)}…`, negative_prompt: `${'\u0001'.repeat(4_000)}…` },
    ],
  ])('keeps the parameters %s', async (_, texts, beginnings) => {
    for (const format of ['jpeg', 'webp'] as const) {
      const file = await encodePicture(picture, format, { ...parameters, ...texts });
      const exif = (await sharp(join(file)).metadata()).exif?.toString('latin1') ?? '';
      const found = [...exif.matchAll(/\{[^{}]*\}/g)].map(([json]) => JSON.parse(json) as unknown);
      expect(found).toEqual([{ ...parameters, ...texts, ...beginnings }]);
    }
  });

  it('resamples to the requested size', async () => {
    const file = await encodePicture(picture, 'png', parameters, { width: 96, height: 64 });
    expect(await sharp(join(file)).metadata()).toMatchObject({ width: 96, height: 64 });
    expect(file).toMatchObject({ width: 96, height: 64 });
  });
});

describe(encodeStyleThumbnail.name, () => {
  it.each([
    [512, 768],
    [768, 512],
    [64, 64],
  ])('makes a PNG of 256 x 256 pixels, without parameters, of %i x %i', async (width, height) => {
    const data = new Uint8Array(width * height * 3).map((_, i) => [0x20, 0x40, 0x60][i % 3]);
    const file = sharp(await encodeStyleThumbnail({ data, width, height }, 'trainedAlgorithmicMedia'));
    const { exif, comments, ...metadata } = await file.metadata();
    expect(metadata).toMatchObject({ width: 256, height: 256, format: 'png' });
    expect([exif, comments]).toEqual([undefined, undefined]);
    expect((await file.stats()).channels.map(({ mean }) => Math.round(mean))).toEqual([0x20, 0x40, 0x60]);
  });
});

describe('The mark of a picture', () => {
  const given = { ...parameters, image_sha256: 'abc' };
  const files: [string, () => Promise<Uint8Array>, string][] = [
    ...(['png', 'jpeg', 'webp'] as const).flatMap((format): [string, () => Promise<Uint8Array>, string][] => [
      [format, async () => join(await encodePicture(picture, format, parameters)), 'trainedAlgorithmicMedia'],
      [`${format} from a picture`, async () => join(await encodePicture(picture, format, given)), composite],
    ]),
    ['thumbnail', () => encodeThumbnail(picture, composite), composite],
    ["Style's thumbnail", () => encodeStyleThumbnail(picture, 'trainedAlgorithmicMedia'), 'trainedAlgorithmicMedia'],
  ];

  it.each(files)('says in XMP that it is made, in the words of IPTC: %s', async (_, encode, type) => {
    const { xmp } = await sharp(await encode()).metadata();
    const [, value] = /Iptc4xmpExt:DigitalSourceType="([^"]+)"/.exec(xmp?.toString('utf8') ?? '') ?? [];
    expect(value).toBe(`http://cv.iptc.org/newscodes/digitalsourcetype/${type}`);
  });
});
