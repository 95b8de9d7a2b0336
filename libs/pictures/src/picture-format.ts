import { NoPictureError } from './picture-error';

export type PictureFormat = 'png' | 'jpeg' | 'webp';

/** First bytes of files, as Latin-1 text, and what such a file is; a dot stands for any byte. */
const formats: readonly (readonly [beginning: RegExp, format: PictureFormat])[] = [
  [/^\x89PNG\r\n/, 'png'],
  [/^\xff\xd8\xff/, 'jpeg'],
  [/^RIFF....WEBP/s, 'webp'],
];
const others: readonly (readonly [beginning: RegExp, what: string])[] = [
  [/^GIF8/, 'a GIF'],
  [/^(?:II\*\0|MM\0\*)/, 'a TIFF'],
  [/^BM/, 'a BMP'],
  [/^....ftyp(?:heic|heix|mif1|msf1)/s, 'a HEIC picture'],
  [/^....ftypavi/s, 'an AVIF picture'],
  [/^%PDF/, 'a PDF'],
  [/^(?:\xef\xbb\xbf)?\s{0,8}<\?xml|^\s{0,8}<svg/i, 'an SVG or another XML file'],
  [/^\s{0,8}<(?:!doctype|html)/i, 'a page of HTML'],
  [/^PK[^a-z]{2}/, 'a zip archive'],
];

/**
 * The format of a file, as its first bytes tell it.
 * @throws NoPictureError that says what else it is
 */
export function formatOf(head: Uint8Array): PictureFormat {
  const text = Buffer.from(head.subarray(0, 32)).toString('latin1');
  const found = formats.find(([beginning]) => beginning.test(text));
  if (found) return found[1];
  const other = others.find(([beginning]) => beginning.test(text));
  throw new NoPictureError(`is ${other?.[1] ?? 'no picture'}, and a PNG, JPEG or WebP is needed`);
}

const riffHeader = 12;
const chunkHeader = 8;
/** Header of a frame of an animated WebP, before the chunks of its pixels. */
const frameHeader = 16;

/**
 * Whether the first picture of a WebP file is lossless: the name of the chunk that has its pixels tells. Chunks of
 * colour profiles and metadata may come before it.
 * Source: https://developers.google.com/speed/webp/docs/riff_container
 */
export function isLossless(webp: Buffer): boolean {
  let at = riffHeader;
  while (at + chunkHeader <= webp.length) {
    const name = webp.toString('latin1', at, at + 4);
    if (name === 'VP8L' || name === 'VP8 ') return name === 'VP8L';
    const bytes = webp.readUInt32LE(at + 4);
    // The length of a chunk does not count the byte that makes it even.
    at += chunkHeader + (name === 'ANMF' ? frameHeader : bytes + (bytes % 2));
  }
  return false;
}
