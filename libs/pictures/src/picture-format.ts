import { open } from 'node:fs/promises';
import { NoPictureError } from './picture-error';

/** Enough of the first bytes to tell the format. */
const headBytes = 32;

export type PictureFormat = 'png' | 'jpeg' | 'webp';

/** First bytes of files, as Latin-1 text, and what such a file is; a dot stands for any byte. */
const formats: readonly (readonly [beginning: RegExp, format: PictureFormat])[] = [
  [/^\x89PNG\r\n/, 'png'],
  [/^\xff\xd8\xff/, 'jpeg'],
  [/^RIFF....WEBP/s, 'webp'],
];
/* eslint-disable no-control-regex -- first bytes of files have them */
/** Kinds of HEIF share a brand; the brands after it tell them apart. */
const others: readonly (readonly [beginning: RegExp, what: string])[] = [
  [/^GIF8/, 'a GIF'],
  [/^(?:II[*+]\0|MM\0[*+])/, 'a TIFF'],
  [/^BM/, 'a BMP'],
  [/^....ftyp(?:avi[fs]|mi[af][f1].*avi[fs]|msf1.*avi[fs])/s, 'an AVIF picture'],
  [/^....ftyp(?:he[iv][cxms]|mi[af][f1]|msf1)/s, 'a HEIC picture'],
  [/^(?:\xff\x0a|\0\0\0\x0cJXL )/, 'a JPEG XL picture'],
  [/^(?:\xff\x4f\xff\x51|\0\0\0\x0cjP {2})/, 'a JPEG 2000 picture'],
  [/^II\xbc/, 'a JPEG XR picture'],
  [/^8BPS/, 'a PSD'],
  [/^\0\0[\x01\x02]\0/, 'an ICO'],
  [/^v\/1\x01|^#\?RADIANCE/, 'an HDR picture'],
  [/^P[1-7]\s/, 'a PNM'],
  [/^%PDF/, 'a PDF'],
  [/^%!PS/, 'a PostScript file'],
  [/^(?:....ftyp|\x1aE\xdf\xa3|RIFF....AVI )/s, 'a video'],
  [/^(?:\xef\xbb\xbf)?\s{0,8}<(?:\?xml|svg|!--|!doctype svg)/i, 'an SVG or another XML file'],
  [/^\s{0,8}<(?:!doctype|html)/i, 'a page of HTML'],
  [/^PK[^a-z]{2}/, 'a zip archive'],
  [/^data:/i, 'a data: URL and not the picture in it'],
];
/* eslint-enable no-control-regex */

/**
 * The format of a file, as its first bytes tell it.
 * @throws NoPictureError that says what else it is
 */
export function formatOf(head: Uint8Array): PictureFormat {
  const text = Buffer.from(head.subarray(0, headBytes)).toString('latin1');
  const found = formats.find(([beginning]) => beginning.test(text));
  if (found) return found[1];
  const other = others.find(([beginning]) => beginning.test(text));
  throw new NoPictureError(`is ${other?.[1] ?? 'no picture'}, and a PNG, JPEG or WebP is needed`);
}

/** The same of a file, or of the path of one. @throws NoPictureError */
export async function formatOfSource(source: Uint8Array | string): Promise<PictureFormat> {
  if (typeof source !== 'string') return formatOf(source);
  const file = await open(source);
  const { buffer, bytesRead } = await file.read(Buffer.alloc(headBytes), 0, headBytes, 0).finally(() => file.close());
  return formatOf(buffer.subarray(0, bytesRead));
}
