import { NoPictureError } from './picture-error';
import type { Colours, Pixels } from './pixels';

/** Pixels of a mask from this value on are repainted. */
const repainted = 128;

/**
 * A picture as a mask: its brightness, or how transparent it is. Where nothing was painted, nothing is repainted.
 * Brightness is that of ITU-R BT.601, rounded as Pillow's `convert('L')` does, with which diffusers reads masks.
 */
export function maskOf({ width, height, channels, data }: Colours, of: 'white' | 'transparent'): Pixels {
  const hasAlpha = channels === 4;
  if (of === 'transparent' && !hasAlpha)
    throw new NoPictureError('has no alpha channel, whose transparent parts say what is repainted');
  const mask = new Uint8Array(width * height);
  for (let i = 0, at = 0; i < mask.length; i++, at += channels) {
    const alpha = hasAlpha ? data[at + 3] : 255;
    const brightness = (data[at] * 19595 + data[at + 1] * 38470 + data[at + 2] * 7471 + 0x8000) >> 16;
    mask[i] = of === 'white' ? Math.round((brightness * alpha) / 255) : 255 - alpha;
  }
  return { width, height, data: mask };
}

/** @throws NoPictureError for a mask that marks nothing */
export function assertMarks({ data }: Pixels, of: 'white' | 'transparent'): void {
  if (data.some((value) => value >= repainted)) return;
  throw new NoPictureError(
    of === 'transparent'
      ? 'marks nothing: what is transparent is repainted'
      : 'marks nothing: what is white is repainted, from 128 of 255 on, and what is transparent counts as black',
  );
}
