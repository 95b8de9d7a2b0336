import type { SchedulerConfig } from './scheduler-config';
import { logFloat32 } from './log-float32';
import { noiseLevels } from './noise-schedule';
import { linspace, spacedTimesteps } from './timesteps';

/** Noise levels of a run and the U-Net's timestep at each. */
export interface SigmaSchedule {
  /** float32, one per timestep and one for the end of the run. */
  sigmas: Float32Array;
  timesteps: Float64Array;
}

/** The schedule of the k-diffusion family (Euler, Euler ancestral, Heun, LMS), whose timesteps are fractional. */
export function sigmaSchedule(config: SchedulerConfig, alphas: Float32Array, steps: number): SigmaSchedule {
  const levels = noiseLevels(alphas);
  const spaced = spacedTimesteps(config, { steps, span: alphas.length, dropsLast: false }).map(Math.fround);
  const interpolated = spaced.map((t) => interpolate(levels, t));
  const respaced = respaceSigmas(config, interpolated[0], interpolated[steps - 1], steps);
  const end = config.finalSigmasType === 'sigma_min' ? levels[0] : 0;
  if (!respaced) return { sigmas: Float32Array.of(...interpolated, end), timesteps: spaced };
  const timestepOf = timestepFinder(levels);
  return { sigmas: Float32Array.of(...respaced, end), timesteps: respaced.map((s) => Math.fround(timestepOf(s))) };
}

/**
 * Noise levels spaced as the configuration asks; undefined if they follow the timesteps.
 * Source: Karras et al., "Elucidating the Design Space of Diffusion-Based Generative Models" (2022), equation 5.
 * @param max the highest noise level of the run, unless the configuration sets it; `min` likewise
 */
export function respaceSigmas(
  config: SchedulerConfig,
  max: number,
  min: number,
  steps: number,
): Float64Array | undefined {
  const high = config.sigmaMax ?? max;
  const low = config.sigmaMin ?? min;
  if (config.useExponentialSigmas) return linspace(Math.log(high), Math.log(low), steps).map(Math.exp);
  if (!config.useKarrasSigmas) return undefined;
  // rho = 7 is the paper's choice.
  const highRoot = high ** (1 / 7);
  const lowRoot = low ** (1 / 7);
  return linspace(0, 1, steps).map((ramp) => (highRoot + ramp * (lowRoot - highRoot)) ** 7);
}

/** The (fractional) training timestep of a noise level, interpolated linearly in the logarithm. */
export function timestepFinder(levels: Float32Array): (sigma: number) => number {
  const logs = logFloat32(levels);
  return (sigma) => {
    const log = Math.log(Math.max(sigma, 1e-10));
    let low = logs.length - 2;
    while (low > 0 && logs[low] > log) low--;
    const weight = Math.min(1, Math.max(0, (logs[low] - log) / (logs[low] - logs[low + 1])));
    return (1 - weight) * low + weight * (low + 1);
  };
}

/** `numpy.interp` over the indices of `levels`. */
function interpolate(levels: Float32Array, t: number): number {
  const index = Math.floor(t);
  if (index >= levels.length - 1) return levels[levels.length - 1];
  return (levels[index + 1] - levels[index]) * (t - index) + levels[index];
}

/** Scale of the first sample in the k-diffusion family. */
export function initialNoiseSigma(config: SchedulerConfig, sigmas: Float32Array): number {
  const max = sigmas.reduce((a, b) => Math.max(a, b));
  return config.timestepSpacing === 'leading' ? Math.fround(Math.sqrt(max ** 2 + 1)) : max;
}

/** Scales the k-diffusion family's sample, x0 + sigma * noise, to the form that the U-Net expects. */
export function scaleToUnitVariance(sample: Float32Array, sigma: number): Float32Array {
  const scale = 1 / Math.sqrt(sigma ** 2 + 1);
  const scaled = new Float32Array(sample.length);
  for (let i = 0; i < scaled.length; i++) scaled[i] = sample[i] * scale;
  return scaled;
}
