import type { RgbImage } from './planes';

/** Bits behind the point of a weight, and half of one. */
const precision = 2 ** 22;

/** Catmull and Rom's cubic, which reaches two pixels far. */
function cubic(distance: number): number {
  const x = Math.abs(distance);
  if (x < 1) return (1.5 * x - 2.5) * x * x + 1;
  return x < 2 ? ((-0.5 * x + 2.5) * x - 4) * x + 2 : 0;
}

/** What each pixel of a scaled line is made of: the first pixel of the line before, and the weights from there on. */
function weightsOf(length: number, scaled: number): { first: number; weights: Float64Array }[] {
  const scale = length / scaled;
  const stretch = Math.max(scale, 1);
  return Array.from({ length: scaled }, (_, i) => {
    const centre = (i + 0.5) * scale;
    const first = Math.max(0, Math.trunc(centre - 2 * stretch + 0.5));
    const end = Math.min(length, Math.trunc(centre + 2 * stretch + 0.5));
    const raw = Array.from({ length: end - first }, (_, x) => cubic((x + first - centre + 0.5) / stretch));
    const sum = raw.reduce((all, weight) => all + weight);
    return {
      first,
      weights: Float64Array.from(raw, (weight) => Math.trunc((weight / sum) * precision + Math.sign(weight) / 2)),
    };
  });
}

/**
 * A picture scaled with a bicubic kernel, to the byte as Pillow's `Image.resize` does: along the rows first, rounded,
 * then along the columns. Source: Pillow's `Resample.c`.
 */
export function resampled({ data, width, height }: RgbImage, to: { width: number; height: number }): RgbImage {
  const wide = along(data, weightsOf(width, to.width), height, { step: 3, line: width * 3, toLine: to.width * 3 });
  const columns = { step: to.width * 3, line: 3, toLine: 3 };
  return { ...to, data: along(wide, weightsOf(height, to.height), to.width, columns) };
}

/** Scales lines, each `line` bytes behind the one before, whose pixels are `step` bytes apart, also in what comes out. */
function along(
  data: Uint8Array,
  weights: ReturnType<typeof weightsOf>,
  lines: number,
  { step, line, toLine }: { step: number; line: number; toLine: number },
): Uint8Array {
  const scaled = new Uint8ClampedArray(lines * weights.length * 3);
  for (let row = 0; row < lines; row++)
    for (let i = 0; i < weights.length; i++) {
      const { first, weights: own } = weights[i];
      const to = row * toLine + i * step;
      for (let colour = 0; colour < 3; colour++) {
        let sum = precision / 2;
        let at = row * line + first * step + colour;
        for (let k = 0; k < own.length; k++, at += step) sum += data[at] * own[k];
        scaled[to + colour] = Math.floor(sum / precision);
      }
    }
  return new Uint8Array(scaled.buffer);
}
