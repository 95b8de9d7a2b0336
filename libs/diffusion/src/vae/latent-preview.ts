import type { LatentShape } from '../tensor/latent-shape';
import { fromPlanes } from '../tensor/rgb-image';
import type { RgbImage } from '../tensor/rgb-image';

/**
 * A linear map from one position of the latents to the mean colour of its pixels, 0..1. It belongs to one model's VAE and is
 * stored beside it as `preview.json`.
 */
export interface LatentRgbMap {
  /** One row per colour (red, green, blue), one weight per latent channel. */
  weights: number[][];
  /** One number per colour. */
  bias: number[];
}

/**
 * A small picture of latents [channels, height, width], one pixel per position.
 * @param map without one, the first three channels are shown, each stretched to its own range: shapes are visible, colours mean
 * nothing
 */
export function previewLatents(
  latents: Float32Array,
  [channels, height, width]: LatentShape,
  map?: LatentRgbMap,
): RgbImage {
  const size = height * width;
  const planes = new Float32Array(3 * size);
  for (let colour = 0; colour < 3; colour++) {
    const plane = planes.subarray(colour * size, (colour + 1) * size);
    if (!map) plane.set(stretch(latents.subarray((colour % channels) * size, ((colour % channels) + 1) * size)));
    else
      for (let i = 0; i < size; i++) {
        let value = map.bias[colour];
        for (let channel = 0; channel < channels; channel++)
          value += map.weights[colour][channel] * latents[channel * size + i];
        plane[i] = value;
      }
  }
  return fromPlanes(planes, width, height, (value) => value * 255);
}

function stretch(values: Float32Array): Float32Array {
  const low = values.reduce((a, b) => Math.min(a, b), Infinity);
  const high = values.reduce((a, b) => Math.max(a, b), -Infinity);
  return values.map((value) => (high > low ? (value - low) / (high - low) : 0.5));
}
