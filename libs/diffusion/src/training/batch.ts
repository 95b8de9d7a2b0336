import { sampleLatents } from '../autoencoders/autoencoder';
import type { ModelFolder } from '../families/model-folder';
import { Generator, MersenneTwister } from '../random/generator';
import { alphasCumprod } from '../schedulers/noise-schedule';
import { type PredictionType, readSchedulerConfig } from '../schedulers/scheduler-config';
import type { LatentShape } from '../tensor/planes';
import type { Example, Examples, PriorRow } from './examples';
import type { TrainingSettings } from './settings';

/** One picture at one time: what the denoiser sees, and what it should say. */
export interface TrainingRow extends PriorRow {
  /** Weight of its loss. */
  weight: number;
}

/** How a model's noise grows, and what of it the denoiser predicts. */
export class NoiseSchedule {
  private readonly alphas: Float32Array;
  private readonly predictionType: PredictionType;

  constructor({ schedulerJson }: Pick<ModelFolder, 'schedulerJson'>) {
    const config = readSchedulerConfig(schedulerJson, { rescale_betas_zero_snr: false });
    this.alphas = alphasCumprod(config);
    this.predictionType = config.predictionType;
  }

  get timesteps(): number {
    return this.alphas.length;
  }

  /** Source: Ho et al., "Denoising Diffusion Probabilistic Models" (2020); Salimans and Ho (2022) for v. */
  row({ shape, text }: Example, latents: Float32Array, noise: Float32Array, timestep: number, gamma = 0): TrainingRow {
    const alpha = this.alphas[timestep];
    const [signal, sigma] = [Math.sqrt(alpha), Math.sqrt(1 - alpha)];
    const sample = latents.map((value, i) => signal * value + sigma * noise[i]);
    const targets: Record<PredictionType, () => Float32Array> = {
      epsilon: () => noise,
      sample: () => latents,
      v_prediction: () => latents.map((value, i) => signal * noise[i] - sigma * value),
    };
    return {
      ...{ shape, text, sample, timestep, target: targets[this.predictionType]() },
      weight: gamma > 0 ? this.weight(alpha / (1 - alpha), gamma) : 1,
    };
  }

  /** Source: Hang et al., "Efficient Diffusion Training via Min-SNR Weighting Strategy" (2023), section 3.4. */
  private weight(ratio: number, gamma: number): number {
    const least = Math.min(ratio, gamma);
    if (this.predictionType === 'sample') return least;
    return this.predictionType === 'epsilon' ? Math.min(1, gamma / ratio) : least / (ratio + 1);
  }
}

/** The rows of a step: all of them follow from the seed and the step, and all rows have one size. */
export function rowsOfStep(
  { shown, prior, noText }: Examples,
  schedule: NoiseSchedule,
  settings: TrainingSettings,
  step: number,
): TrainingRow[] {
  const { seed, batch, priorShare, captionDropout, minSnrGamma, offsetNoise } = settings;
  const seedOfStep = (Math.imul(seed, 0x9e3779b1) + step + 1) >>> 0;
  // Another seed than that of the noise: the same numbers would bind a time to its noise.
  const random = new MersenneTwister((seedOfStep ^ 0x5bd1e995) >>> 0);
  const generator = new Generator(seedOfStep);
  const oneOf = <T>(list: readonly T[]): T => list[Math.floor(random.uniform() * list.length)];
  // The first picture decides the size of the others.
  const size = sizeOf(oneOf(shown));
  const own = shown.filter((each) => sizeOf(each) === size);
  const others = prior.filter((each) => sizeOf(each) === size);
  return Array.from({ length: batch }, () => {
    if (random.uniform() < priorShare && others.length > 0) return { ...oneOf(others), weight: 1 };
    const example = oneOf(own);
    const isSilent = random.uniform() < captionDropout;
    const timestep = Math.floor(random.uniform() * schedule.timesteps);
    const noise = generator.randn(example.mean.length);
    if (offsetNoise > 0) addOffset(noise, generator.randn(example.shape[0]), offsetNoise);
    const latents = sampleLatents(example, generator);
    const text = isSilent ? noText : example.text;
    return schedule.row({ ...example, text }, latents, noise, timestep, minSnrGamma);
  });
}

/** An example at some times that are spread evenly, each with noise that is always the same. */
export function rowsToJudge(example: Example, schedule: NoiseSchedule, times: number): TrainingRow[] {
  return Array.from({ length: times }, (_, i) => {
    const timestep = Math.floor(((i + 0.5) / times) * schedule.timesteps);
    return schedule.row(example, example.mean, new Generator(i).randn(example.mean.length), timestep);
  });
}

export const sizeOf = ({ shape: [, height, width] }: { shape: LatentShape }): string => `${height}x${width}`;

function addOffset(noise: Float32Array, offsets: Float32Array, share: number): void {
  const positions = noise.length / offsets.length;
  for (let i = 0; i < noise.length; i++) noise[i] += share * offsets[Math.floor(i / positions)];
}
