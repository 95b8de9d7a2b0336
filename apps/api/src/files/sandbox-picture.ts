import sharp from 'sharp';
import { pathOf, widthOf } from './block-letters';
import type { SandboxPictureOrder } from './picture-order';

/**
 * A hatched picture with the word SANDBOX and the beginning of the prompt. It is drawn at its base size, and then
 * enlarged by repeating pixels: drawing 4096 pixels directly takes thirty times as long.
 */
export async function drawSandboxPicture(order: SandboxPictureOrder): Promise<Uint8Array> {
  const { base, size, format } = order;
  const { data, info } = await sharp(Buffer.from(svgOf(order)))
    .removeAlpha()
    .raw()
    .toBuffer({ resolveWithObject: true });
  let image = sharp(data, { raw: { width: info.width, height: info.height, channels: 3 } });
  if (size.width !== base.width) image = image.resize({ ...size, fit: 'fill', kernel: 'nearest' });
  if (format === 'png') return image.png({ compressionLevel: 6 }).toBuffer();
  return format === 'webp' ? image.webp({ effort: 0 }).toBuffer() : image.jpeg().toBuffer();
}

function svgOf({ lines, hue, base: { width, height } }: SandboxPictureOrder): string {
  const centered = (text: string, y: number, dot: number): string =>
    pathOf(text, Math.round((width - widthOf(text) * dot) / 2), y, dot);
  const words = lines.map((line, index) => centered(line, Math.round(height / 2) + 24 + index * 36, 4));
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">
<defs><pattern id="hatch" width="32" height="32" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
<rect width="32" height="32" fill="hsl(${hue}, 60%, 82%)"/><rect width="16" height="32" fill="hsl(${hue}, 60%, 76%)"/>
</pattern></defs>
<rect width="${width}" height="${height}" fill="url(#hatch)"/>
<path fill="#b00020" d="${centered('SANDBOX', Math.round(height / 2) - 80, 10)}"/>
<path fill="#222" d="${words.join('')}"/>
</svg>`;
}
