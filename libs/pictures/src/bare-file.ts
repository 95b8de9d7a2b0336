import type { PictureFormat } from './picture-format';

interface Part {
  name: string;
  /** With its header, and all that belongs to it. */
  whole: Buffer;
}

/** The chunks that define a PNG's pixels and colours. Source: https://www.w3.org/TR/png-3/ */
const pngNames = new Set(['IHDR', 'PLTE', 'tRNS', 'iCCP', 'sRGB', 'gAMA', 'cHRM', 'cICP', 'IDAT', 'IEND']);
/** The same of a WebP. Source: https://developers.google.com/speed/webp/docs/riff_container */
const webpNames = new Set(['VP8X', 'ICCP', 'ALPH', 'VP8 ', 'VP8L']);
/** Flags of `VP8X`: EXIF and XMP follow. */
const webpMetadata = 0x0c;

/**
 * The same picture without EXIF, XMP, text or thumbnail; pixels stay as they are encoded, with their profile.
 * @param file that its decoder has read to the end
 * @returns undefined where its parts cannot be told apart
 */
export function bareFile(file: Buffer, format: PictureFormat): Buffer | undefined {
  return { png: barePng, jpeg: bareJpeg, webp: bareWebp }[format](file);
}

/** The chunks of a PNG, at most to its end. */
export function* pngChunks(png: Buffer): Generator<Part> {
  for (let at = 8, name = ''; at + 12 <= png.length && name !== 'IEND';) {
    const end = at + 12 + png.readUInt32BE(at);
    name = png.toString('latin1', at + 4, at + 8);
    if (end <= png.length) yield { name, whole: png.subarray(at, end) };
    at = end;
  }
}

function barePng(png: Buffer): Buffer | undefined {
  const kept = [...pngChunks(png)].filter(({ name }) => pngNames.has(name));
  if (kept.at(-1)?.name !== 'IEND') return undefined;
  return Buffer.concat([png.subarray(0, 8), ...kept.map(({ whole }) => whole)]);
}

function bareWebp(webp: Buffer): Buffer | undefined {
  const kept: Buffer[] = [];
  for (let at = 12; at + 8 <= webp.length;) {
    const bytes = webp.readUInt32LE(at + 4);
    // The length of a chunk does not count the byte that makes it even.
    const end = at + 8 + bytes + (bytes % 2);
    const name = webp.toString('latin1', at, at + 4);
    const whole = Buffer.from(webp.subarray(at, end));
    if (name === 'VP8X') whole[8] &= ~webpMetadata;
    if (webpNames.has(name)) kept.push(whole);
    at = end;
  }
  if (kept.length === 0) return undefined;
  const made = Buffer.concat([Buffer.from('RIFF....WEBP'), ...kept]);
  made.writeUInt32LE(made.length - 8, 4);
  return made;
}

/** Markers of a JPEG without a length: TEM, RST0 to RST7, SOI, EOI. Source: ITU-T T.81, table B.1 */
const isBareMarker = (marker: number): boolean => marker === 0x01 || (marker >= 0xd0 && marker <= 0xd9);

function bareJpeg(jpeg: Buffer): Buffer | undefined {
  const kept: Buffer[] = [];
  for (let at = 0; at + 2 <= jpeg.length;) {
    if (jpeg[at] !== 0xff) return undefined;
    const marker = jpeg[at + 1];
    if (marker === 0xff) {
      at++;
      continue;
    }
    const isBare = isBareMarker(marker);
    if (!isBare && at + 4 > jpeg.length) return undefined;
    let end = at + 2 + (isBare ? 0 : jpeg.readUInt16BE(at + 2));
    // Behind the header of a scan is its data, to the next marker.
    if (marker === 0xda || (marker >= 0xd0 && marker <= 0xd7)) end = endOfScan(jpeg, end);
    kept.push(...bareSegment(marker, jpeg.subarray(at, end)));
    if (marker === 0xd9) return Buffer.concat(kept);
    at = end;
  }
  return undefined;
}

/** Where the next marker is: in a scan 0xFF before 0 stands for itself. */
function endOfScan(jpeg: Buffer, from: number): number {
  for (let at = jpeg.indexOf(0xff, from); at !== -1; at = jpeg.indexOf(0xff, at + 1)) if (jpeg[at + 1] !== 0) return at;
  return jpeg.length;
}

/** Of applications' data only what says how to read colours: JFIF without its thumbnail, the profile, Adobe's mark. */
function bareSegment(marker: number, segment: Buffer): Buffer[] {
  const begins = (text: string): boolean => segment.toString('latin1', 4, 4 + text.length) === text;
  if (marker === 0xe0 && begins('JFIF\0') && segment.length >= 18)
    return [Buffer.from([0xff, 0xe0, 0, 16]), segment.subarray(4, 16), Buffer.alloc(2)];
  if (marker === 0xe2) return begins('ICC_PROFILE\0') ? [segment] : [];
  if (marker === 0xee) return begins('Adobe') ? [segment] : [];
  const isDropped = (marker >= 0xe0 && marker <= 0xef) || marker === 0xfe;
  return isDropped ? [] : [segment];
}
