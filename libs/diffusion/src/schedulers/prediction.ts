import type { PredictionType } from './scheduler-config';

/** (sample * `sample` + output * `output`) * `scale`, with one factor last so that a share of signal of 0 gives infinity. */
export interface Blend {
  sample: number;
  output: number;
  scale: number;
}

/**
 * The picture (x0) that the model's output means, where sample = alpha * x0 + sigma * noise.
 * Source: Salimans and Ho, "Progressive Distillation for Fast Sampling of Diffusion Models" (2022), section 4 and appendix D.
 */
export function predictedData(type: PredictionType, alpha: number, sigma: number): Blend {
  if (type === 'epsilon') return { sample: 1, output: -sigma, scale: 1 / alpha };
  if (type === 'v_prediction') return { sample: alpha, output: -sigma, scale: 1 };
  return { sample: 0, output: 1, scale: 1 };
}

/** The noise that the model's output means; the terms as for {@link predictedData}. */
export function predictedNoise(type: PredictionType, alpha: number, sigma: number): Blend {
  if (type === 'epsilon') return { sample: 0, output: 1, scale: 1 };
  if (type === 'v_prediction') return { sample: sigma, output: alpha, scale: 1 };
  return { sample: 1, output: -alpha, scale: 1 / sigma };
}

/**
 * d sample / d sigma of the probability flow, where sample = x0 + sigma * noise, as weights of sample and model output.
 * Source: Karras et al. (2022), equation 3; the U-Net saw sample / sqrt(sigma^2 + 1).
 */
export function derivative(type: PredictionType, sigma: number): Omit<Blend, 'scale'> {
  const variance = sigma * sigma + 1;
  if (type === 'epsilon') return { sample: 0, output: 1 };
  if (type === 'v_prediction') return { sample: sigma / variance, output: 1 / Math.sqrt(variance) };
  return { sample: 1 / sigma, output: -1 / sigma };
}

/** The sum of the arrays, each times its weight; rounded to float32 after each term, as torch does. */
export function weightedSum(weights: readonly number[], arrays: readonly Float32Array[]): Float32Array {
  const [first, second] = arrays;
  const [a, b] = weights;
  const sum = new Float32Array(first.length);
  if (second === undefined) for (let i = 0; i < sum.length; i++) sum[i] = a * first[i];
  else for (let i = 0; i < sum.length; i++) sum[i] = a * first[i] + b * second[i];
  for (let k = 2; k < arrays.length; k++) {
    const term = arrays[k];
    const weight = weights[k];
    for (let i = 0; i < sum.length; i++) sum[i] += weight * term[i];
  }
  return sum;
}
