import { deflateSync } from 'node:zlib';
import sharp, { type Sharp } from 'sharp';
import type { Random } from './shapes';

/** A file that is no ordinary picture. */
export interface HostilePicture {
  name: string;
  file: Buffer;
}

const plain = (width: number, height: number, background = '#fff', channels: 3 | 4 = 3): Sharp =>
  sharp({ create: { width, height, channels, background }, limitInputPixels: false });

/** A chunk of a PNG. */
function chunk(type: string, data: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  // A wrong checksum is hostile too.
  return Buffer.concat([length, Buffer.from(type), data, Buffer.alloc(4)]);
}

/** Ordinary files of all kinds, and what is dear to read. */
async function seeds(): Promise<[name: string, file: Buffer][]> {
  const noise = Buffer.from(Array.from({ length: 300 * 200 * 3 }, (_, i) => (i * 7919) & 255));
  const small = sharp(noise, { raw: { width: 300, height: 200, channels: 3 } });
  const make = async (name: string, picture: Sharp): Promise<[string, Buffer]> => [name, await picture.toBuffer()];
  const png = await small.clone().png().toBuffer();
  const zeros = deflateSync(Buffer.alloc(64 * 2 ** 20));
  const made = await Promise.all([
    make('png', small.clone().png()),
    make('interlaced png', small.clone().png({ progressive: true })),
    make('png of 16 bit', small.clone().toColourspace('rgb16').png()),
    make('png with a palette', small.clone().png({ palette: true })),
    make('jpeg', small.clone().jpeg()),
    make('progressive jpeg', small.clone().jpeg({ progressive: true })),
    make('cmyk jpeg', small.clone().toColourspace('cmyk').jpeg()),
    make('webp', small.clone().webp()),
    make('lossless webp', small.clone().webp({ lossless: true })),
    make('bomb of 144 megapixels', plain(12_000, 12_000).png({ compressionLevel: 9 })),
    make('png of 49 megapixels', plain(7_000, 7_000, '#1234', 4).png({ progressive: true })),
    make('jpeg of 49 megapixels', plain(7_000, 7_000).jpeg({ progressive: true, quality: 1 })),
    make('1 x 30,000 pixels', plain(1, 30_000).png()),
  ]);
  return [
    ...made,
    ['png with 64 MB of text', Buffer.concat([png.subarray(0, 33), chunk('zTXt', zeros), png.subarray(33)])],
    ['png with 64 MB of profile', Buffer.concat([png.subarray(0, 33), chunk('iCCP', zeros), png.subarray(33)])],
  ];
}

type Mutation = (file: Buffer, random: Random) => Buffer;

const mutations: Record<string, Mutation> = {
  whole: (file) => file,
  cut: (file, random) => file.subarray(0, random.magnitude(1, file.length)),
  'with wrong bytes': (file, random) => {
    const changed = Buffer.from(file);
    for (let left = random.magnitude(1, 200); left > 0; left--)
      changed[random.integer(0, changed.length - 1)] = random.integer(0, 255);
    return changed;
  },
  'with a wrong head': (file, random) => {
    const changed = Buffer.from(file);
    for (let i = 12; i < Math.min(64, changed.length); i++)
      if (random.next() < 0.2) changed[i] = random.integer(0, 255);
    return changed;
  },
  'of wrong size': (file, random) => {
    const changed = Buffer.from(file);
    // Where a PNG has its width and height.
    if (changed.length > 24) for (const at of [16, 20]) changed.writeUInt32BE(random.magnitude(1, 2 ** 32 - 1), at);
    return changed;
  },
  'and a page': (file) => Buffer.concat([file, Buffer.from('<script>alert(1)</script>'.repeat(1_000))]),
  twice: (file, random) => Buffer.concat([file.subarray(0, random.integer(1, file.length)), file]),
  'in itself': (file, random) => {
    const at = random.integer(1, file.length);
    return Buffer.concat([file.subarray(0, at), file, file.subarray(at)]);
  },
};

/** Files made up at random; the same seed makes the same ones. */
export async function hostilePictures(random: Random, count: number): Promise<HostilePicture[]> {
  const files = await seeds();
  return Array.from({ length: count }, () => {
    const [kind, file] = random.pick(files);
    const [how, change] = random.pick(Object.entries(mutations));
    return { name: `${kind} ${how}`, file: change(file, random) };
  });
}
