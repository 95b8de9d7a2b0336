import type { LatentShape, RgbImage } from '../src/tensor/planes';
import { type LatentRgbMap, previewTerms, withProducts } from '../src/autoencoders/latent-preview';

/** Final latents and the picture that the VAE decoded from them. */
export interface PreviewSample {
  latents: Float32Array;
  shape: LatentShape;
  image: RgbImage;
}

/**
 * Share of the squared latents that is added to the diagonal, so that a constant channel does not
 * make the system singular.
 */
const ridge = 1e-6;

/**
 * The map from latents to colours that fits the given pictures best, by least squares: every position of the latents
 * against the mean colour of its pixels.
 * @param products whether the products of two channels count as well, which needs some thousand positions
 */
export function fitLatentRgbMap(samples: readonly PreviewSample[], { products = false } = {}): LatentRgbMap {
  const [channels] = samples[0].shape;
  const weights = products ? withProducts(channels) : channels;
  const terms = weights + 1;
  // Normal equations: row i of `left` is the sum of x_i * x_j, row i of `right` the sum of x_i *
  // colour; the last x is 1.
  const left = Array.from({ length: terms }, () => new Float64Array(terms));
  const right = Array.from({ length: terms }, () => new Float64Array(3));
  for (const { latents, shape, image } of samples) {
    const positions = shape[1] * shape[2];
    const colours = boxMeans(image, shape);
    for (let p = 0; p < positions; p++) {
      const x = Float64Array.of(...previewTerms(latents, shape, p, weights), 1);
      for (let i = 0; i < terms; i++) {
        for (let j = 0; j < terms; j++) left[i][j] += x[i] * x[j];
        for (let colour = 0; colour < 3; colour++) right[i][colour] += x[i] * colours[p * 3 + colour];
      }
    }
  }
  for (let i = 0; i < terms; i++) left[i][i] *= 1 + ridge;
  const solution = solve(left, right);
  const column = (colour: number) => solution.map((row) => Number(row[colour].toFixed(5)));
  const rows = [0, 1, 2].map(column);
  return { weights: rows.map((row) => row.slice(0, weights)), bias: rows.map((row) => row[weights]) };
}

/** Mean colour, 0..1, of the pixels of each position of the latents. */
function boxMeans({ data, width, height }: RgbImage, [, rows, columns]: LatentShape): Float64Array {
  const means = new Float64Array(rows * columns * 3);
  const [boxHeight, boxWidth] = [height / rows, width / columns];
  const share = 1 / (255 * boxHeight * boxWidth);
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) {
      const position = Math.floor(y / boxHeight) * columns + Math.floor(x / boxWidth);
      for (let colour = 0; colour < 3; colour++)
        means[position * 3 + colour] += data[(y * width + x) * 3 + colour] * share;
    }
  return means;
}

/** Gauss-Jordan elimination with partial pivoting, in place: solves `left` times the result equals `right`. */
function solve(left: Float64Array[], right: Float64Array[]): Float64Array[] {
  for (let column = 0; column < left.length; column++) {
    let pivot = column;
    for (let row = column; row < left.length; row++)
      if (Math.abs(left[row][column]) > Math.abs(left[pivot][column])) pivot = row;
    [left[column], left[pivot]] = [left[pivot], left[column]];
    [right[column], right[pivot]] = [right[pivot], right[column]];
    const scale = left[column][column] || 1;
    for (let row = 0; row < left.length; row++) {
      if (row === column) continue;
      const factor = left[row][column] / scale;
      left[row] = left[row].map((value, j) => value - factor * left[column][j]);
      right[row] = right[row].map((value, j) => value - factor * right[column][j]);
    }
  }
  return right.map((row, i) => row.map((value) => value / (left[i][i] || 1)));
}
