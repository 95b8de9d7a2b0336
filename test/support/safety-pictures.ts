import type { RgbImage } from '@app/diffusion';

const sizes = [
  [512, 512],
  [512, 768],
  [768, 512],
  [640, 368],
  [256, 256],
  [120, 90],
  [224, 224],
  [225, 301],
];

const triangle = (n: number): number => Math.min(Math.abs((n % 512) - 256), 255);

/** The same pictures as `picture` of scripts/goldens/safety_checker.py makes. */
export function safetyPicture(i: number): RgbImage {
  const [width, height] = sizes[i % sizes.length];
  const data = new Uint8Array(width * height * 3);
  const weight = (i % 4) + 1;
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++)
      for (let c = 0; c < 3; c++) {
        const waves =
          triangle(x * (1 + (i % 7)) + c * (i % 5) * 60 + i * 37) + triangle(y * (1 + (i % 6)) + c * 85 + i * 11);
        const noise = ((x * 7919 + y * 104_729 + c * 1_299_709 + i * 15_485_863) % 8191) % 256;
        const sum = waves * weight + noise * (4 - weight);
        data[(y * width + x) * 3 + c] = Math.floor(sum / (2 * weight + 4 - weight));
      }
  return { width, height, data };
}
