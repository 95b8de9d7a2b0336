import type { RgbImage } from '@app/diffusion';

/** Peak signal-to-noise ratio in decibels; infinite for equal pictures, -infinity for pictures of different sizes. */
export function psnr(actual: RgbImage, expected: RgbImage): number {
  if (actual.width !== expected.width || actual.height !== expected.height) return -Infinity;
  let sum = 0;
  for (let i = 0; i < actual.data.length; i++) sum += (actual.data[i] - expected.data[i]) ** 2;
  return 10 * Math.log10(255 ** 2 / (sum / actual.data.length));
}
