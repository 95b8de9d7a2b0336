import type { OutputFormat, PlaceInPicture } from '@app/domain';
import sharp from 'sharp';
import type { RgbImage } from '../engine/engine-protocol';
import { withPngText } from './png-text';
import { type DigitalSourceType, sourceTypeOf, xmpOf } from './source-type';

/** The metadata of a picture: everything needed to draw it again. */
export interface PictureParameters {
  prompt: string;
  negative_prompt: string | null;
  /** Here and below: only where it is on. */
  prompt_weighting?: true;
  /** The seed of this picture, not of the request's first. */
  seed: number;
  cfg: number;
  steps: number;
  scheduler: string;
  /** The size at which it is drawn, before it is enlarged. */
  width: number;
  height: number;
  model: string;
  model_hash: string;
  weights_hash?: string;
  weights_scale?: number;
  finetunes?: { id: string; weights_hash?: string | undefined; weights_scale: number }[];
  image_sha256?: string;
  strength?: number | undefined;
  mask_sha256?: string;
  outpaint?: PlaceInPicture;
  control?: {
    image_sha256?: string | undefined;
    model: string;
    model_hash: string;
    scale: number;
    start: number;
    end: number;
    preprocess?: string;
  }[];
  high_resolution?: true;
  upscaler?: string;
  version: string;
}

/** A finished file, in consecutive parts. */
export interface EncodedPicture {
  parts: Uint8Array[];
  bytes: number;
  contentType: string;
  extension: string;
  width: number;
  height: number;
}

const kinds = {
  png: { contentType: 'image/png', extension: 'png' },
  jpeg: { contentType: 'image/jpeg', extension: 'jpg' },
  webp: { contentType: 'image/webp', extension: 'webp' },
} as const satisfies Record<OutputFormat, object>;

/** Width and height of a Style's thumbnail, in pixels. */
const styleThumbnailEdge = 256;
/** The longest edge of a record's thumbnail. */
const thumbnailEdge = 384;

/** Keyword of the PNG's text chunk with parameters, which other image tools also read. */
const keyword = 'parameters';
/** That of XMP, which is to stand uncompressed: libvips compresses it. Source: XMP specification, part 3, 1.1.5. */
const xmpKeyword = 'XML:com.adobe.xmp';

/**
 * Encodes a picture in libvips' own threads and embeds its parameters, an iTXt chunk in a PNG, the EXIF description and
 * comment in a JPEG or WebP, and XMP that says what it is. A picture of another size than `size` is resampled to it with a
 * Lanczos kernel.
 * @param quality of a JPEG or WebP, 0 to 100
 */
export async function encodePicture(
  picture: RgbImage,
  format: OutputFormat,
  parameters: PictureParameters,
  size: { width: number; height: number } = picture,
  quality?: number,
): Promise<EncodedPicture> {
  const { width, height } = size;
  const raw = { width: picture.width, height: picture.height, channels: 3 as const };
  let image = sharp(picture.data, { raw });
  if (width !== picture.width || height !== picture.height)
    image = image.resize({ width, height, fit: 'fill', kernel: 'lanczos3' });
  const xmp = xmpOf(sourceTypeOf(parameters));
  const parts =
    format === 'png'
      ? withPngText(await toPng(image), { [keyword]: JSON.stringify(parameters), [xmpKeyword]: xmp })
      : [await withExif(image.withXmp(xmp), format, exifOf(parameters), quality)];
  return { parts, bytes: parts.reduce((sum, part) => sum + part.length, 0), ...kinds[format], width, height };
}

/** A Style's thumbnail: a PNG of the most interesting square of a picture, without its parameters. */
export async function encodeStyleThumbnail(
  { data, width, height }: RgbImage,
  type: DigitalSourceType,
): Promise<Uint8Array> {
  const png = sharp(data, { raw: { width, height, channels: 3 } })
    .resize(styleThumbnailEdge, styleThumbnailEdge, { fit: 'cover', position: sharp.strategy.attention })
    .png({ compressionLevel: 9 });
  return Buffer.concat(withPngText(await png.toBuffer(), { [xmpKeyword]: xmpOf(type) }));
}

/** A record's thumbnail: a small WebP of a picture, in its shape, without its parameters. */
export function encodeThumbnail({ data, width, height }: RgbImage, type: DigitalSourceType): Promise<Uint8Array> {
  return sharp(data, { raw: { width, height, channels: 3 } })
    .resize(thumbnailEdge, thumbnailEdge, { fit: 'inside', withoutEnlargement: true })
    .withXmp(xmpOf(type))
    .webp({ quality: 80 })
    .toBuffer();
}

function toPng(image: sharp.Sharp): Promise<Buffer> {
  return image.png({ compressionLevel: 6 }).toBuffer();
}

/** A JPEG holds 64 kB of EXIF, and libvips writes none of more. */
const exifBytes = 64_000;
/** Characters of each text where both together do not fit; escaped, they have up to six bytes each. */
const exifCharacters = 4_000;

/** The parameters in two places, or where that is too much in one, with the beginnings of its texts if need be. */
function exifOf(parameters: PictureParameters): sharp.Exif {
  const { prompt, negative_prompt: negative } = parameters;
  const text = asciiJson(parameters);
  if (2 * text.length <= exifBytes) return { IFD0: { ImageDescription: text }, IFD2: { UserComment: text } };
  if (text.length <= exifBytes) return { IFD2: { UserComment: text } };
  const beginnings = { prompt: beginningOf(prompt), negative_prompt: negative && beginningOf(negative) };
  return { IFD2: { UserComment: asciiJson({ ...parameters, ...beginnings }) } };
}

const beginningOf = (text: string): string =>
  text.length <= exifCharacters ? text : `${text.slice(0, exifCharacters).toWellFormed()}…`;

/** EXIF text is ASCII: other characters become JSON escapes, which every JSON parser reads. */
const asciiJson = (value: object): string =>
  JSON.stringify(value).replace(
    /[\u007f-\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

function withExif(image: sharp.Sharp, format: 'jpeg' | 'webp', exif: sharp.Exif, quality?: number): Promise<Buffer> {
  const described = image.withExif(exif);
  // libvips has no quality of 0.
  const asked = quality === undefined ? undefined : Math.max(1, quality);
  return format === 'jpeg'
    ? described.jpeg({ quality: asked ?? 95, chromaSubsampling: '4:4:4' }).toBuffer()
    : described.webp({ quality: asked ?? 92 }).toBuffer();
}
