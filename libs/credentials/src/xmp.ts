import { inflateSync } from 'node:zlib';

/** As XML writes it: an attribute, an element, or a resource. Source: ISO 16684-1, 7. */
const property = 'DigitalSourceType';
const value = /digitalsourcetype\/(\w{1,80})/;
/** From a property to the end of its value. */
const mostLetters = 500;
/** Of a file: more than any has in good faith. */
const [mostProperties, mostPackets, mostBytes] = [100, 10, 1_000_000];

/** The words of IPTC's "Digital Source Type" in the XMP of a file, in their order. */
export function sourceTypesInXmp(file: Buffer): string[] {
  return [file, ...compressedPackets(file)].flatMap((text) => {
    const found: string[] = [];
    let at = text.indexOf(property);
    for (let n = 0; at >= 0 && n < mostProperties; n++) {
      const next = text.indexOf(property, at + property.length);
      const end = Math.min(next < 0 ? Infinity : next, at + mostLetters);
      found.push(...(value.exec(text.toString('latin1', at, end))?.slice(1) ?? []));
      at = next;
    }
    return found;
  });
}

const pngSignature = Buffer.from('89504e470d0a1a0a', 'hex');
const keyword = Buffer.from('XML:com.adobe.xmp\0');

/** XMP as libvips and others write it into a PNG. Source: https://www.w3.org/TR/png-3/, 11.3.3 */
function compressedPackets(file: Buffer): Buffer[] {
  if (!file.subarray(0, pngSignature.length).equals(pngSignature)) return [];
  const found: Buffer[] = [];
  for (let at = pngSignature.length; at + 8 <= file.length && found.length < mostPackets;) {
    const name = file.toString('latin1', at + 4, at + 8);
    const data = file.subarray(at + 8, at + 8 + file.readUInt32BE(at));
    const rest = data.subarray(keyword.length);
    const isCompressed = name === 'zTXt' || (name === 'iTXt' && rest[0] === 1);
    if (isCompressed && data.subarray(0, keyword.length).equals(keyword)) found.push(inflated(name, rest));
    at += 12 + file.readUInt32BE(at);
  }
  return found;
}

function inflated(name: string, rest: Buffer): Buffer {
  // Behind the method of compression, and in an iTXt behind its language and a translation of the keyword.
  const from = name === 'zTXt' ? 1 : rest.indexOf(0, rest.indexOf(0, 2) + 1) + 1;
  try {
    return inflateSync(rest.subarray(from), { maxOutputLength: mostBytes });
  } catch {
    // Broken, or too large: it says nothing.
    return Buffer.alloc(0);
  }
}
