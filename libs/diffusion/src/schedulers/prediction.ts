import type { PredictionType, SchedulerConfig } from './scheduler-config';

const { fround } = Math;

/**
 * (sample * `sample` + output * `output`) * `scale`. One factor comes last, so that a share of signal of 0 gives
 * infinity.
 */
interface Blend {
  sample: number;
  output: number;
  scale: number;
}

/**
 * The picture (x0) that the model's output implies, where sample = alpha * x0 + sigma * noise.
 * Source: Salimans and Ho, "Progressive Distillation for Fast Sampling of Diffusion Models" (2022),
 * section 4 and appendix D.
 */
export function predictedData(type: PredictionType, alpha: number, sigma: number): Blend {
  if (type === 'epsilon') return { sample: 1, output: -sigma, scale: 1 / alpha };
  if (type === 'v_prediction') return { sample: alpha, output: -sigma, scale: 1 };
  return { sample: 0, output: 1, scale: 1 };
}

/**
 * The picture that the prediction of a model of flow matching implies, where sample = (1 - sigma) * x0 + sigma * noise.
 */
export function flowPicture(modelOutput: Float32Array, sigma: number, sample: Float32Array): Float32Array {
  return weightedSum([1, -sigma], [sample, modelOutput]);
}

/** The noise that the model's output implies; parameters as for {@link predictedData}. */
export function predictedNoise(type: PredictionType, alpha: number, sigma: number): Blend {
  if (type === 'epsilon') return { sample: 0, output: 1, scale: 1 };
  if (type === 'v_prediction') return { sample: sigma, output: alpha, scale: 1 };
  return { sample: 1, output: -alpha, scale: 1 / sigma };
}

/**
 * The picture that the model's output implies, limited as the configuration asks; parameters as for
 * {@link predictedData}.
 */
export function picture(
  config: SchedulerConfig,
  { alpha, sigma }: { alpha: number; sigma: number },
  modelOutput: Float32Array,
  sample: Float32Array,
): Float32Array {
  const data = config.useFlowSigmas
    ? { sample: 1, output: -sigma, scale: 1 }
    : predictedData(config.predictionType, alpha, sigma);
  const values = new Float32Array(sample.length);
  for (let i = 0; i < values.length; i++)
    values[i] = (data.sample * sample[i] + data.output * modelOutput[i]) * data.scale;
  limit(values, config);
  return values;
}

/**
 * The noise that the model's output implies, or if the picture is limited, the noise that the limited picture implies.
 */
export function noise(
  config: SchedulerConfig,
  { alpha, sigma }: { alpha: number; sigma: number },
  modelOutput: Float32Array,
  sample: Float32Array,
): Float32Array {
  if (config.thresholding)
    return weightedSum([1 / sigma, -alpha / sigma], [sample, picture(config, { alpha, sigma }, modelOutput, sample)]);
  const implied = predictedNoise(config.predictionType, alpha, sigma);
  return weightedSum([implied.sample * implied.scale, implied.output * implied.scale], [sample, modelOutput]);
}

/**
 * Limits a predicted picture in place. Source of the thresholding: Saharia et al., "Photorealistic Text-to-Image
 * Diffusion Models with Deep Language Understanding" (2022), section 2.3; diffusers' `_threshold_sample`.
 */
function limit(values: Float32Array, config: SchedulerConfig): void {
  if (config.thresholding) {
    const quantile = quantileOf(values.map(Math.abs), config.dynamicThresholdingRatio);
    const bound = Math.min(config.sampleMaxValue, Math.max(1, quantile));
    for (let i = 0; i < values.length; i++) values[i] = clamp(values[i], bound) / bound;
  } else if (config.clipSample)
    for (let i = 0; i < values.length; i++) values[i] = clamp(values[i], config.clipSampleRange);
}

function clamp(value: number, bound: number): number {
  return Math.min(bound, Math.max(-bound, value));
}

/** `torch.quantile`, which ranks and interpolates in float32. Sorts the values. */
function quantileOf(values: Float32Array, ratio: number): number {
  values.sort();
  const rank = fround(fround(ratio) * (values.length - 1));
  const below = Math.floor(rank);
  const weight = fround(rank - below);
  const low = values[below];
  const high = values[Math.min(below + 1, values.length - 1)];
  return low + weight * (high - low);
}

/**
 * d sample / d sigma of the probability flow, where sample = x0 + sigma * noise and the denoiser
 * saw sample / sqrt(sigma^2 + 1).
 * Source: Karras et al., "Elucidating the Design Space of Diffusion-Based Generative Models" (2022), equation 3.
 *
 * It rounds to float32 wherever torch does: at a noise level of thousands (zero terminal SNR) or after a long step from
 * a small one the rounding is visible in the picture.
 */
export function derivative(
  config: SchedulerConfig,
  sigma: number,
  modelOutput: Float32Array,
  sample: Float32Array,
): Float32Array {
  const alpha = 1 / Math.sqrt(sigma ** 2 + 1);
  const data = predictedData(config.predictionType, alpha, sigma * alpha);
  const clipRange = config.clipSample ? config.clipSampleRange : Infinity;
  const sampleWeight = fround(data.sample * data.scale * alpha);
  const outputWeight = fround(data.output * data.scale);
  const values = new Float32Array(sample.length);
  for (let i = 0; i < values.length; i++) {
    const x0 = fround(fround(outputWeight * modelOutput[i]) + fround(sampleWeight * sample[i]));
    values[i] = fround(sample[i] - clamp(x0, clipRange)) / sigma;
  }
  return values;
}

/** The weighted sum of the arrays, rounded to float32 after each operation as in torch. */
export function weightedSum(weights: readonly number[], arrays: readonly Float32Array[]): Float32Array {
  const [first, second] = arrays;
  const [a, b] = weights;
  const sum = new Float32Array(first.length);
  if (second === undefined) for (let i = 0; i < sum.length; i++) sum[i] = a * first[i];
  else for (let i = 0; i < sum.length; i++) sum[i] = fround(a * first[i]) + fround(b * second[i]);
  for (let k = 2; k < arrays.length; k++) {
    const term = arrays[k];
    const weight = weights[k];
    for (let i = 0; i < sum.length; i++) sum[i] += fround(weight * term[i]);
  }
  return sum;
}
