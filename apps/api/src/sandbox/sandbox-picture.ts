import type { ImageTask } from '@app/domain';
import { highResolutionLongEdge, sizeOf } from '@app/domain';
import sharp from 'sharp';
import { pathOf, widthOf } from './block-letters';

/** Letters of a line of the prompt, and how many lines are shown. */
const lineLength = 20;
const maxLines = 4;

const kinds = {
  png: { contentType: 'image/png', extension: 'png' },
  jpeg: { contentType: 'image/jpeg', extension: 'jpg' },
  webp: { contentType: 'image/webp', extension: 'webp' },
} as const;

/** A finished picture, and what its row says of it. */
export interface SandboxPicture {
  file: Buffer;
  contentType: string;
  extension: string;
  width: number;
  height: number;
}

/** A hatched picture of the right size and format that says SANDBOX and how the prompt begins; its color follows from the seed. */
export async function drawSandboxPicture(
  task: Pick<ImageTask, 'prompt' | 'aspectRatio' | 'highResolution' | 'outputFormat'>,
  seed: number,
): Promise<SandboxPicture> {
  const base = sizeOf[task.aspectRatio];
  const scale = task.highResolution ? highResolutionLongEdge / Math.max(base.width, base.height) : 1;
  const size = { width: Math.round(base.width * scale), height: Math.round(base.height * scale) };
  const image = sharp(Buffer.from(svgOf(task.prompt, seed, base, size))).removeAlpha();
  return { file: await image.toFormat(task.outputFormat).toBuffer(), ...kinds[task.outputFormat], ...size };
}

function svgOf(
  prompt: string,
  seed: number,
  { width, height }: { width: number; height: number },
  size: { width: number; height: number },
): string {
  const hue = (seed * 137) % 360;
  const centered = (text: string, y: number, dot: number): string =>
    pathOf(text, Math.round((width - widthOf(text) * dot) / 2), y, dot);
  const words = linesOf(prompt).map((line, index) => centered(line, Math.round(height / 2) + 24 + index * 36, 4));
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${size.width}" height="${size.height}" viewBox="0 0 ${width} ${height}">
<defs><pattern id="hatch" width="32" height="32" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
<rect width="32" height="32" fill="hsl(${hue}, 60%, 82%)"/><rect width="16" height="32" fill="hsl(${hue}, 60%, 76%)"/>
</pattern></defs>
<rect width="${width}" height="${height}" fill="url(#hatch)"/>
<path fill="#b00020" d="${centered('SANDBOX', Math.round(height / 2) - 80, 10)}"/>
<path fill="#222" d="${words.join('')}"/>
</svg>`;
}

/** The first words, in lines; what stands between words is a blank. */
function linesOf(prompt: string): string[] {
  const lines: string[] = [];
  for (const word of prompt.match(/[\p{L}\p{N}]+/gu) ?? []) {
    const cut = [...word].slice(0, lineLength).join('');
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + cut.length <= lineLength) lines[lines.length - 1] = `${last} ${cut}`;
    else lines.push(cut);
    if (lines.length > maxLines) break;
  }
  return lines.slice(0, maxLines);
}
