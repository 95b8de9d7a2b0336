import { randomBytes } from 'node:crypto';
import sharp from 'sharp';
import { isLossless } from './picture-format';

describe(isLossless.name, () => {
  const picture = () => sharp(randomBytes(32 * 32 * 3), { raw: { width: 32, height: 32, channels: 3 } });
  const moving = async (isLosslessFile: boolean): Promise<Buffer> => {
    const frames = await Promise.all([picture().png().toBuffer(), picture().png().toBuffer()]);
    return sharp(frames, { join: { animated: true } })
      .webp({ lossless: isLosslessFile })
      .toBuffer();
  };
  /** A file whose pixels come after one chunk more. */
  const behind = (file: Buffer, name: string, content: Buffer): Buffer => {
    const header = Buffer.from(`${name}....`, 'latin1');
    header.writeUInt32LE(content.length, 4);
    const made = Buffer.concat([
      file.subarray(0, 12),
      header,
      content,
      Buffer.alloc(content.length % 2),
      file.subarray(12),
    ]);
    made.writeUInt32LE(made.length - 8, 4);
    return made;
  };

  it.each([true, false])('says of a WebP, moving or not, whether it is lossless: %s', async (expected) => {
    expect(isLossless(await picture().webp({ lossless: expected }).toBuffer())).toBe(expected);
    expect(isLossless(await moving(expected))).toBe(expected);
  });

  it('finds the pixels behind a colour profile of any length, and is not misled by metadata', async () => {
    const [lossless, lossy] = [await picture().webp({ lossless: true }).toBuffer(), await picture().webp().toBuffer()];
    expect(isLossless(behind(lossless, 'ICCP', Buffer.alloc(5_001)))).toBe(true);
    expect(isLossless(behind(lossy, 'XMP ', Buffer.from('A text about VP8L')))).toBe(false);
  });

  it('reads no further than the end of a broken file', () => {
    for (const length of [0, 12, 19]) expect(isLossless(Buffer.alloc(length))).toBe(false);
    expect(isLossless(Buffer.from('RIFF....WEBPICCP\xff\xff\xff\xff', 'latin1'))).toBe(false);
  });
});
