import type { Pixels, Size } from './pixels';

/** A part of a picture, in pixels of the size `of`. */
export interface Part extends Size {
  left: number;
  top: number;
  of: Size;
}

/**
 * Enlarges a picture or a mask: Lanczos by the centres of pixels, as Pillow and so diffusers do. libvips would shift it
 * by a pixel to the right and down.
 * @param part of it; all of it if not given
 */
export function enlarged(picture: Pixels, wanted: Size, part?: Part): Pixels {
  const { width, height } = picture;
  if (!part && width === wanted.width && height === wanted.height) return picture;
  const { left, top, of, ...cut } = part ?? { left: 0, top: 0, width, height, of: picture };
  const channels = picture.data.length / (width * height);
  const columns = taps(width, left / of.width, cut.width / of.width, wanted.width);
  const rows = taps(height, top / of.height, cut.height / of.height, wanted.height);
  const wide = new Uint8ClampedArray(wanted.width * height * channels);
  for (let y = 0, to = 0; y < height; y++)
    for (const { first, shares } of columns)
      for (let c = 0; c < channels; c++) {
        const from = (y * width + first) * channels + c;
        wide[to++] = weighted(picture.data, from, channels, shares);
      }
  const line = wanted.width * channels;
  const data = new Uint8ClampedArray(line * wanted.height);
  for (const [y, { first, shares }] of rows.entries())
    for (let x = 0; x < line; x++) data[y * line + x] = weighted(wide, first * line + x, line, shares);
  return { width: wanted.width, height: wanted.height, data: new Uint8Array(data.buffer) };
}

function weighted(data: Uint8Array | Uint8ClampedArray, from: number, step: number, shares: number[]): number {
  let sum = 0;
  for (let i = 0; i < shares.length; i++) sum += data[from + i * step] * shares[i];
  return sum;
}

/** Pixels to each side that count. */
const reach = 3;

function lanczos(x: number): number {
  if (x === 0) return 1;
  const t = Math.PI * x;
  return Math.abs(x) < reach ? (reach * Math.sin(t) * Math.sin(t / reach)) / (t * t) : 0;
}

/** For each of `count` pixels along a part of an edge: its source pixels from `first` on, and their weights. */
function taps(edge: number, from: number, length: number, count: number): { first: number; shares: number[] }[] {
  return Array.from({ length: count }, (_, i) => {
    const centre = (from + (length * (i + 0.5)) / count) * edge;
    const first = Math.max(0, Math.round(centre - reach));
    const end = Math.min(edge, Math.round(centre + reach));
    const shares = Array.from({ length: end - first }, (_, k) => lanczos(first + k + 0.5 - centre));
    const sum = shares.reduce((a, b) => a + b);
    return { first, shares: shares.map((share) => share / sum) };
  });
}
