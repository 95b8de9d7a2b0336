import { crc32 } from 'node:zlib';

const signatureBytes = 8;
/** The header chunk comes first and has 13 bytes of data (PNG specification, 11.2.2). */
const headerEnd = signatureBytes + 12 + 13;

/**
 * Inserts uncompressed international text chunks (iTXt, PNG specification 11.3.3.4) after a PNG's header.
 * @param texts by keyword, of 1 to 79 characters of Latin-1
 * @returns the file in parts, in order; the picture's data is not copied.
 */
export function withPngText(png: Uint8Array, texts: Readonly<Record<string, string>>): Uint8Array[] {
  const chunks = Object.entries(texts).map(([keyword, text]) => textChunk(keyword, text));
  return [png.subarray(0, headerEnd), ...chunks, png.subarray(headerEnd)];
}

function textChunk(keyword: string, text: string): Buffer {
  // keyword, end of keyword, not compressed, method 0, no language tag, no translated keyword, text
  const data = Buffer.concat([Buffer.from(keyword, 'latin1'), Buffer.from([0, 0, 0, 0, 0]), Buffer.from(text, 'utf8')]);
  const typed = Buffer.concat([Buffer.from('iTXt', 'latin1'), data]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  const checksum = Buffer.alloc(4);
  checksum.writeUInt32BE(crc32(typed));
  return Buffer.concat([length, typed, checksum]);
}
