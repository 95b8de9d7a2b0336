import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import sharp, { type Metadata, type Sharp, type SharpOptions } from 'sharp';
import { sizeDrawnFrom, type SizeRules } from '@app/diffusion/sizes';
import type { PlaceInPicture, Preprocessor } from '@app/domain';
import { bareFile, pngChunks } from './bare-file';
import { cannyEdges } from './canny-edges';
import { enlarged } from './enlarged';
import { assertMarks, maskOf } from './mask-of';
import { continued, placeIn } from './outpainted';
import { hasCredentials } from './has-credentials';
import { LargePictureError, NoPictureError } from './picture-error';
import { formatOf, type PictureFormat } from './picture-format';
import type { Colours, Pixels, Size } from './pixels';
import { referenceSize } from './reference-size';

/** The cost of decoding grows with pixels and with rows. */
interface PictureLimits {
  pixels: number;
  edge: number;
  /** Longer edge divided by the shorter one. */
  ratio: number;
}

/** A size, or what decides it for the shape of a picture. */
export type WantedSize = Size | Pick<SizeRules, 'edge' | 'multiple'>;

/** A file, in memory or on the disk, and what becomes of it. */
export type DecodingOrder = { source: Uint8Array | string; most: PictureLimits } &
  /** Of the size, or of the one that these rules give its shape. With `canny` its edges, in white on black. */
  (
    | { to: 'rgb'; size?: WantedSize; preprocess?: Preprocessor }
    /**
     * The part to repaint, in white: the white of the file, or its transparent parts. It is stretched onto a picture of
     * the size `onto`, and cropped like that one.
     */
    | { to: 'mask'; size?: Size; onto?: Size; of: 'white' | 'transparent' }
    /** As it is in a larger one; `place`: true is its middle. */
    | { to: 'outpaint'; size: Size; place: true | PlaceInPicture }
    /** In its own shape, as a model looks at it. */
    | { to: 'reference' }
    /** Only the pixels: encoded as they came, or as a PNG where they have to be turned upright. */
    | { to: 'file'; path: string }
  );

/** A decoded file. `width` and `height` are those of the whole picture, upright. */
export interface Decoded extends Size {
  /** Of the original file, in hexadecimal. */
  sha256: string;
  /** Of the new file, if there is one. */
  format: PictureFormat;
  /** Of a new file: whether a part of it is more transparent than opaque. */
  isTransparent?: boolean;
  pixels?: Pixels;
  /** Length of the new file. */
  bytes?: number;
}

// No loader but these reads a file, whatever it claims to be.
sharp.block({ operation: ['VipsForeignLoad'] });
sharp.unblock({ operation: ['VipsForeignLoadPng', 'VipsForeignLoadJpeg', 'VipsForeignLoadWebp'] });
sharp.cache(false);

const reading: SharpOptions = { limitInputPixels: false, failOn: 'error' };

/** Reads the first picture of a file. @throws NoPictureError; an error with its code if a new file cannot be written */
export async function decodePicture(order: DecodingOrder): Promise<Decoded> {
  const { made, ...decoded } = await read(order);
  if (order.to === 'file' && made) await writeFile(order.path, made);
  return decoded;
}

/** @returns also the bytes of the new file. @throws NoPictureError */
async function read(order: DecodingOrder): Promise<Decoded & { made?: Buffer }> {
  const { source } = order;
  const file = typeof source === 'string' ? await readFile(source) : Buffer.from(source);
  const format = formatOf(file);
  const sha256 = createHash('sha256').update(file).digest('hex');
  try {
    const metadata = await sharp(file, reading).metadata();
    const { width, height } = metadata.autoOrient;
    assertSize({ width, height }, order.most);
    if (format === 'png') assertColours(file);
    const found = { sha256, format, width, height };
    if (order.to === 'file') return { ...found, ...(await fileOf(file, format, metadata)) };
    const upright = sharp(await inEightBits(file, metadata), reading).autoOrient();
    if (order.to === 'mask') return { ...found, pixels: await readMask(upright, { width, height }, order) };
    if (order.to === 'reference') return { ...found, pixels: await readReference(upright, { width, height }) };
    if (order.to === 'outpaint') {
      const place = placeIn(order.size, found, order.place);
      return { ...found, pixels: continued(onWhite(await coloursOf(upright)), order.size, place) };
    }
    const size = sizeFor(found, order.size);
    const part = middle({ width, height }, size);
    const pixels = enlarged(onWhite(await coloursOf(reduced(upright.extract(part), part, size))), size);
    return { ...found, pixels: order.preprocess === 'canny' ? cannyEdges(pixels) : pixels };
  } catch (error) {
    if (error instanceof NoPictureError) throw error;
    throw new NoPictureError(`is broken: ${plain(error as Error)}`, { cause: error });
  }
}

const sizeFor = ({ width, height }: Size, wanted: WantedSize = { width, height }): Size =>
  'edge' in wanted ? sizeDrawnFrom(wanted, { width, height }) : wanted;

function assertSize({ width, height }: Size, { pixels, edge, ratio }: PictureLimits): void {
  const refuse = (accepted: string, Reason = NoPictureError): never => {
    throw new Reason(`has ${width} x ${height} pixels, and at most ${accepted} are taken`);
  };
  const [short, long] = [Math.min(width, height), Math.max(width, height)];
  if (long > edge) refuse(`${edge} on an edge`);
  if (long > short * ratio) refuse(`${ratio} on one edge for each on the other`);
  if (width * height > pixels) refuse(`${pixels / 1e6} megapixels`, LargePictureError);
}

/**
 * Code points of `cICP` that are those of sRGB: primaries of BT.709, the curve of it or of sRGB. Source: ITU-T H.273
 */
const plainCodes = new Set(['1 1', '1 6', '1 13']);

/** libvips reads colours by their profile alone. @throws NoPictureError where code points say other colours */
function assertColours(png: Buffer): void {
  const chunks = new Map<string, Buffer>();
  for (const { name, whole } of pngChunks(png)) {
    if (name === 'IDAT') break;
    chunks.set(name, whole);
  }
  const code = chunks.get('cICP');
  if (!code || chunks.has('iCCP') || plainCodes.has(`${code[8]} ${code[9]}`)) return;
  throw new NoPictureError('has the colours of another space than sRGB, and says so without an ICC profile (cICP)');
}

/**
 * libvips mistakes the profile of 16-bit pictures for Display P3, and ignores it where they are grey. Pictures of 8
 * bits it converts by their profile.
 */
async function inEightBits(file: Buffer, { depth, icc, channels }: Metadata): Promise<Buffer> {
  if (depth !== 'ushort' || !icc) return file;
  const space = channels < 3 ? 'b-w' : 'srgb';
  // If turned at once, it would lose its profile.
  const whole = sharp(file, reading).keepIccProfile().keepExif().toColourspace(space);
  return whole.png({ compressionLevel: 0 }).toBuffer();
}

/** The middle, in the shape of `wanted`. */
function middle({ width, height }: Size, wanted: Size) {
  const scale = Math.min(width / wanted.width, height / wanted.height);
  const cut = {
    width: Math.max(1, Math.round(wanted.width * scale)),
    height: Math.max(1, Math.round(wanted.height * scale)),
  };
  return { left: (width - cut.width) >> 1, top: (height - cut.height) >> 1, ...cut };
}

const scaling = { fit: 'fill', kernel: 'lanczos3', fastShrinkOnLoad: false } as const;

/** Never enlarges. A picture of that size stays the same, byte for byte. */
const reduced = (picture: Sharp, size: Size, wanted: Size): Sharp =>
  picture.resize(Math.min(size.width, wanted.width), Math.min(size.height, wanted.height), scaling);

async function readMask(
  upright: Sharp,
  own: Size,
  { size = own, onto = own, of }: DecodingOrder & { to: 'mask' },
): Promise<Pixels> {
  const part = middle(onto, size);
  const isOfPicture = own.width === onto.width && own.height === onto.height;
  const whole = {
    width: Math.ceil((onto.width * size.width) / part.width),
    height: Math.ceil((onto.height * size.height) / part.height),
  };
  const small = isOfPicture ? reduced(upright.extract(part), part, size) : reduced(upright, own, whole);
  const mask = enlarged(maskOf(await coloursOf(small), of), size, isOfPicture ? undefined : { ...part, of: onto });
  assertMarks(mask, of);
  return mask;
}

async function readReference(upright: Sharp, size: Size): Promise<Pixels> {
  const { scaled, part } = referenceSize(size);
  return onWhite(await coloursOf(reduced(upright, size, scaled).extract(part)));
}

/** Converts the picture of a caller to sRGB. */
async function coloursOf(picture: Sharp): Promise<Colours> {
  const { data, info } = await picture.toColourspace('srgb').raw().toBuffer({ resolveWithObject: true });
  return { width: info.width, height: info.height, channels: info.channels, data };
}

function onWhite({ width, height, channels, data }: Colours): Pixels {
  if (channels === 3) return { width, height, data: new Uint8Array(data) };
  const flat = new Uint8Array(width * height * 3);
  for (let from = 0, to = 0; from < data.length; from += 4)
    for (let c = 0; c < 3; c++) flat[to++] = Math.round(255 + ((data[from + c] - 255) * data[from + 3]) / 255);
  return { width, height, data: flat };
}

/** All of the file is read in any case, so that no broken one is stored. */
async function fileOf(file: Buffer, format: PictureFormat, metadata: Metadata) {
  const { hasAlpha, orientation = 1, pages = 1 } = metadata;
  const isKept = orientation === 1 && pages === 1;
  // Credentials hold for the whole file alone.
  const bare = isKept ? (hasCredentials(file) ? file : bareFile(file, format)) : undefined;
  if (bare) {
    const one = sharp(file, { ...reading, ignoreIcc: true }).extractChannel(hasAlpha ? 'alpha' : 0);
    const data = await one.raw().toBuffer();
    return { made: bare, bytes: bare.length, isTransparent: hasAlpha && data.some((value) => value < 128) };
  }
  const upright = sharp(await inEightBits(file, metadata), reading).autoOrient();
  const { data, ...raw } = await coloursOf(upright);
  const made = await sharp(data, { raw: raw as SharpOptions['raw'] & object })
    .png({ adaptiveFiltering: true })
    .toBuffer();
  const isTransparent = raw.channels === 4 && data.some((value, i) => i % 4 === 3 && value < 128);
  return { format: 'png' as const, made, bytes: made.length, isTransparent };
}

/** The first line of libvips' message, without what it says of every file. */
function plain({ message }: Error): string {
  const [line] = message.replace(/^(?:Input (?:buffer|file)\s*)?/, '').split('\n');
  return line.replace(/\.$/, '');
}
