import { cures, ModelFolderError } from '../errors';
import { readJsonFile } from '../weights/folder-files';
import { fromPlanes, type LatentShape, type RgbImage } from '../tensor/planes';

/**
 * A map from one position of the latents to the mean colour of its pixels, 0..1. It belongs to one model's VAE and is
 * stored beside it as `preview.json`.
 */
export interface LatentRgbMap {
  /**
   * One row per colour (red, green, blue): one weight for each latent channel, and where a row goes on, one for each
   * product of two channels. Products suit latents that are colours and masks: where a mask is, its colour shows.
   */
  weights: number[][];
  /** One number per colour. */
  bias: number[];
}

/** Weights of a row with products. */
export const withProducts = (channels: number): number => (channels * (channels + 3)) / 2;

/** Values that the weights of one position are for: its channels, and if `count` says so, their products. */
export function previewTerms(
  latents: Float32Array,
  [channels, height, width]: LatentShape,
  position: number,
  count: number,
): Float64Array {
  const terms = new Float64Array(count);
  for (let channel = 0; channel < channels; channel++) terms[channel] = latents[channel * height * width + position];
  let at = channels;
  if (count > channels)
    for (let i = 0; i < channels; i++) for (let j = i; j < channels; j++) terms[at++] = terms[i] * terms[j];
  return terms;
}

/**
 * A small picture of latents [channels, height, width], one pixel per position.
 * @param map without one, the first three channels are shown, each stretched to its own range: shapes are
 * visible, colours mean nothing
 */
export function previewLatents(
  latents: Float32Array,
  [channels, height, width]: LatentShape,
  map?: LatentRgbMap,
): RgbImage {
  const size = height * width;
  const planes = new Float32Array(3 * size);
  if (!map)
    for (let colour = 0; colour < 3; colour++) {
      const channel = colour % channels;
      planes.set(stretch(latents.subarray(channel * size, (channel + 1) * size)), colour * size);
    }
  else
    for (let position = 0; position < size; position++) {
      const terms = previewTerms(latents, [channels, height, width], position, map.weights[0].length);
      for (let colour = 0; colour < 3; colour++) {
        const row = map.weights[colour];
        let value = map.bias[colour];
        for (let i = 0; i < terms.length; i++) value += row[i] * terms[i];
        planes[colour * size + position] = value;
      }
    }
  return fromPlanes(planes, width, height, (value) => value * 255);
}

function stretch(values: Float32Array): Float32Array {
  const low = values.reduce((a, b) => Math.min(a, b), Infinity);
  const high = values.reduce((a, b) => Math.max(a, b), -Infinity);
  return values.map((value) => (high > low ? (value - low) / (high - low) : 0.5));
}

/** The map of a `preview.json`; undefined if there is none. @throws ModelFolderError if it is not what it should be */
export async function readPreview(file: string): Promise<LatentRgbMap | undefined> {
  const json = await readJsonFile(file, { optional: true, cure: cures.correctOrRemove });
  if (!json) return undefined;
  const numbers = (value: unknown, length?: number): value is number[] =>
    Array.isArray(value) && (length === undefined || value.length === length) && value.every((n) => Number.isFinite(n));
  const { weights, bias } = json;
  const rows: unknown[] = Array.isArray(weights) ? weights : [];
  if (rows.length === 3 && rows.every((row) => numbers(row)) && numbers(bias, 3)) return { weights: rows, bias };
  throw new ModelFolderError(file, 'does not hold three rows of weights and three biases', cures.correctOrRemove);
}

/** @throws ModelFolderError if a map was not made for latents of so many channels */
export function checkPreview(file: string, map: LatentRgbMap | undefined, channels: number): void {
  const lengths = [channels, withProducts(channels)];
  if (map?.weights.some((row) => !lengths.includes(row.length) || row.length !== map.weights[0].length))
    throw new ModelFolderError(
      file,
      `does not have one weight for each of ${channels} channels`,
      cures.correctOrRemove,
    );
}
