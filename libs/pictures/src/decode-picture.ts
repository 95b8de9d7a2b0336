import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import sharp, { type OutputInfo, type Sharp } from 'sharp';
import type { Preprocessor } from '@app/domain';
import { cannyEdges } from './canny-edges';
import { NoPictureError } from './picture-error';
import { formatOf, isLossless, type PictureFormat } from './picture-format';
import { nearestSize, type Pixels, type Size } from './pixels';

/** A file, in memory or on the disk, and what becomes of it. */
export type DecodingOrder = { source: Uint8Array | string; maxPixels: number } &
  /** Of several sizes the one whose shape is nearest. With `canny` its edges, in white on black. */
  (
    | { to: 'rgb'; size?: Size | readonly Size[]; preprocess?: Preprocessor }
    /** The part that is repainted, in white: the white of the file, or its transparent parts. */
    | { to: 'mask'; size?: Size | readonly Size[]; of: 'white' | 'transparent' }
    /** The file in its own format, upright, with nothing but its pixels. */
    | { to: 'file'; path: string }
  );

/** A decoded file. `width` and `height` are those of the whole picture, upright. */
export interface Decoded extends Size {
  /** Of the file as it came, in hexadecimal. */
  sha256: string;
  format: PictureFormat;
  /** Whether a part of a new file can be seen through. */
  isTransparent?: boolean;
  /** Of a picture or a mask. */
  pixels?: Pixels;
  /** Length of the new file. */
  bytes?: number;
}

/** A photograph cannot be told from one that was encoded once more at this quality. */
const quality = 95;

// A file meets no other reader than these, whatever it claims to be.
sharp.block({ operation: ['VipsForeignLoad'] });
sharp.unblock({ operation: ['VipsForeignLoadPng', 'VipsForeignLoadJpeg', 'VipsForeignLoadWebp'] });
sharp.cache(false);

/** Reads the first picture of a file. @throws NoPictureError; an error with its code if a new file cannot be written */
export async function decodePicture(order: DecodingOrder): Promise<Decoded> {
  const { encoded, ...decoded } = await read(order);
  if (order.to === 'file' && encoded) await writeFile(order.path, encoded);
  return decoded;
}

/** @returns besides what is decoded, the bytes of the new file. @throws NoPictureError */
async function read(order: DecodingOrder): Promise<Decoded & { encoded?: Buffer }> {
  const { source, maxPixels } = order;
  const file = typeof source === 'string' ? await readFile(source) : Buffer.from(source);
  const format = formatOf(file);
  const sha256 = createHash('sha256').update(file).digest('hex');
  const opened = sharp(file, { limitInputPixels: false, failOn: 'error' });
  try {
    const { autoOrient: size, hasAlpha } = await opened.metadata();
    const { width, height } = size;
    if (width * height > maxPixels)
      throw new NoPictureError(`has ${width} x ${height} pixels, and at most ${maxPixels / 1e6} megapixels are taken`);
    const found = { sha256, format, width, height };
    const upright = opened.autoOrient();
    if (order.to === 'file') {
      const isTransparent = hasAlpha && !(await opened.clone().stats()).isOpaque;
      const encoded = await encode(upright, format, file);
      return { ...found, isTransparent, bytes: encoded.length, encoded };
    }
    const wanted = order.size && nearestSize([order.size].flat(), size);
    const cut = wanted ? fitted(upright, size, wanted) : upright;
    if (order.to === 'rgb') {
      const pixels = await rgbOf(cut);
      return { ...found, pixels: order.preprocess === 'canny' ? cannyEdges(pixels) : pixels };
    }
    return { ...found, pixels: await maskOf(cut, order.of, hasAlpha) };
  } catch (error) {
    if (error instanceof NoPictureError) throw error;
    throw new NoPictureError(`is broken: ${plain(error as Error)}`, { cause: error });
  }
}

/** The middle of a picture, in the shape of `wanted`, scaled to it. One of that size stays as it is to the byte. */
function fitted(picture: Sharp, { width, height }: Size, wanted: Size): Sharp {
  const scale = Math.min(width / wanted.width, height / wanted.height);
  const cut = {
    width: Math.max(1, Math.round(wanted.width * scale)),
    height: Math.max(1, Math.round(wanted.height * scale)),
  };
  const region = { left: (width - cut.width) >> 1, top: (height - cut.height) >> 1, ...cut };
  return picture
    .extract(region)
    .resize(wanted.width, wanted.height, { fit: 'fill', kernel: 'lanczos3', fastShrinkOnLoad: false });
}

const pixelsOf = ({ data, info }: { data: Buffer; info: OutputInfo }): Pixels => ({
  width: info.width,
  height: info.height,
  data: new Uint8Array(data),
});

async function rgbOf(picture: Sharp): Promise<Pixels> {
  const raw = picture.flatten({ background: '#fff' }).toColourspace('srgb').removeAlpha().raw();
  return pixelsOf(await raw.toBuffer({ resolveWithObject: true }));
}

async function maskOf(picture: Sharp, of: 'white' | 'transparent', hasAlpha: boolean): Promise<Pixels> {
  if (of === 'transparent' && !hasAlpha)
    throw new NoPictureError('has no alpha channel, whose transparent parts say what is repainted');
  // Where nothing was painted, nothing is repainted.
  const channel =
    of === 'white' ? picture.flatten({ background: '#000' }).toColourspace('b-w') : picture.extractChannel('alpha');
  const mask = pixelsOf(await channel.raw().toBuffer({ resolveWithObject: true }));
  if (of === 'transparent') mask.data.forEach((alpha, i) => (mask.data[i] = 255 - alpha));
  return mask;
}

function encode(picture: Sharp, format: PictureFormat, file: Buffer): Promise<Buffer> {
  const options = {
    png: {},
    jpeg: { quality, chromaSubsampling: '4:4:4' },
    webp: { quality, lossless: format === 'webp' && isLossless(file) },
  }[format];
  return picture.toColourspace('srgb').toFormat(format, options).toBuffer();
}

/** The first line of what the reader says, without what is said of every file. */
function plain({ message }: Error): string {
  const [line] = message.replace(/^(?:Input (?:buffer|file)\s*)?/, '').split('\n');
  return line.replace(/\.$/, '');
}
