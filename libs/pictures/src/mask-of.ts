import { NoPictureError } from './picture-error';
import type { Colours, Pixels, Size } from './pixels';

/** From this value on a pixel of a mask is repainted. */
const repainted = 128;

/**
 * The mask that a picture is: its brightness, or how transparent it is. Where nothing was painted, nothing is repainted.
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

/** A part of a picture, in pixels of the size `of`. */
interface Part extends Size {
  left: number;
  top: number;
  of: Size;
}

/** A part of a mask that is stretched to `part.of`, at the size `wanted`, which is no smaller: bilinear, by centres. */
export function enlarged(mask: Pixels, part: Part, wanted: Size): Pixels {
  const columns = places(mask.width, part.left / part.of.width, part.width / part.of.width, wanted.width);
  const rows = places(mask.height, part.top / part.of.height, part.height / part.of.height, wanted.height);
  const data = new Uint8Array(wanted.width * wanted.height);
  for (const [y, row] of rows.entries())
    for (const [x, column] of columns.entries()) {
      const across = (start: number): number =>
        mask.data[start + column.low] * (1 - column.share) + mask.data[start + column.high] * column.share;
      const [above, below] = [across(row.low * mask.width), across(row.high * mask.width)];
      data[y * wanted.width + x] = Math.round(above + (below - above) * row.share);
    }
  return { ...wanted, data };
}

/** For each of `count` pixels along a share of an edge: the two pixels that it is between, and its share of the second. */
function places(edge: number, from: number, length: number, count: number) {
  return Array.from({ length: count }, (_, i) => {
    const at = Math.min(Math.max((from + (length * (i + 0.5)) / count) * edge - 0.5, 0), edge - 1);
    const low = Math.floor(at);
    return { low, high: Math.min(low + 1, edge - 1), share: at - low };
  });
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
