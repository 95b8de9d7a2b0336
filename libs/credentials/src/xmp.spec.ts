import { crc32, deflateSync } from 'node:zlib';
import sharp from 'sharp';
import { sourceTypes } from './picture-report';
import { sourceTypesInXmp } from './xmp';

const packetOf = (...words: string[]): string =>
  `<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">${words
    .map((word) => `<rdf:Description Iptc4xmpExt:DigitalSourceType="${sourceTypes}${word}"/>`)
    .join('')}</rdf:RDF></x:xmpmeta>`;
const mark = 'trainedAlgorithmicMedia';
const plain = sharp({ create: { width: 8, height: 8, channels: 3, background: 'red' } });
/** Behind the signature and the head. */
const placeOfChunks = 33;

/** A PNG with a chunk of this name. */
async function pngWith(name: string, ...parts: (string | Buffer)[]): Promise<Buffer> {
  const png = await plain.clone().png().toBuffer();
  const content = Buffer.concat([name, ...parts].map((part) => Buffer.from(part)));
  const chunk = Buffer.alloc(content.length + 8);
  chunk.writeUInt32BE(content.length - name.length);
  content.copy(chunk, 4);
  chunk.writeUInt32BE(crc32(content), content.length + 4);
  return Buffer.concat([png.subarray(0, placeOfChunks), chunk, png.subarray(placeOfChunks)]);
}

describe(sourceTypesInXmp.name, () => {
  it.each(['png', 'jpeg', 'webp'] as const)('reads a %s', async (format) => {
    const picture = await plain.clone().withXmp(packetOf('digitalCapture', mark)).toFormat(format).toBuffer();
    expect(await sourceTypesInXmp(picture)).toEqual(['digitalCapture', mark]);
  });

  const keyword = 'XML:com.adobe.xmp\0';
  it.each([
    ['zTXt', '\0', deflateSync(packetOf(mark))],
    ['iTXt', '\0\0\0\0', Buffer.from(packetOf(mark))],
    ['iTXt', '\x01\0de\0Titel\0', deflateSync(packetOf(mark))],
  ])('reads a PNG that has it in %s behind %j', async (name, head, packet) => {
    expect(await sourceTypesInXmp(await pngWith(name, keyword, head, packet))).toEqual([mark]);
  });

  it('finds none in a comment, nor in what is no picture', async () => {
    const comment = await pngWith('tEXt', `Comment\0${packetOf(mark)}`);
    expect([await sourceTypesInXmp(comment), await sourceTypesInXmp(Buffer.from(packetOf(mark)))]).toEqual([[], []]);
  });
});
