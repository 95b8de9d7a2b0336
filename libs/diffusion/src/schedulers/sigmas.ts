import type { SchedulerConfig } from './scheduler-config';
import { betaQuantile } from './beta-quantile';
import { logFloat32 } from './log-float32';
import { noiseLevels } from './noise-schedule';
import { linspace, spacedTimesteps } from './timesteps';

const { fround } = Math;

/** The noise levels of a run, and what the U-Net is told of them. */
export interface SigmaSchedule {
  /** float32, one per step and one for the end of the run. */
  sigmas: Float32Array;
  /** One per call of the U-Net. */
  timesteps: Float64Array;
}

/** The schedule of the k-diffusion family (Euler, Euler ancestral, Heun, LMS), whose timesteps are fractional. */
export function sigmaSchedule(config: SchedulerConfig, alphas: Float32Array, steps: number): SigmaSchedule {
  const levels = noiseLevels(alphas);
  const { sigmas, timesteps } = doubleSigmaSchedule(config, levels, steps, Math.fround);
  const end = config.finalSigmasType === 'sigma_min' ? levels[0] : 0;
  return { sigmas: Float32Array.of(...sigmas, end), timesteps: timesteps.map(Math.fround) };
}

/**
 * The schedule of the k-diffusion family before it is rounded to float32, without the end of the run.
 * @param levels noise levels of the training timesteps
 * @param rounded rounds timesteps before their noise levels are interpolated
 */
export function doubleSigmaSchedule(
  config: SchedulerConfig,
  levels: Float32Array,
  steps: number,
  rounded: (timestep: number) => number,
): { sigmas: Float64Array; timesteps: Float64Array } {
  const spaced = spacedTimesteps(config, { steps, span: levels.length, dropsLast: false }).map(rounded);
  const sigmas = spaced.map((t) => interpolate(levels, t));
  const respaced = respaceSigmas(config, sigmas[0], sigmas[steps - 1], steps);
  return respaced
    ? { sigmas: respaced, timesteps: respaced.map(timestepFinder(levels)) }
    : { sigmas, timesteps: spaced };
}

/**
 * Noise levels spaced as the configuration asks; undefined if they follow the timesteps.
 * Source: Karras et al., "Elucidating the Design Space of Diffusion-Based Generative Models" (2022), equation 5; Lee et
 * al., "Beta Sampling is All You Need" (2024).
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
  if (config.useBetaSigmas) return linspace(0, 1, steps).map((ramp) => low + betaQuantile(1 - ramp) * (high - low));
  if (config.useExponentialSigmas) return linspace(Math.log(high), Math.log(low), steps).map(Math.exp);
  if (!config.useKarrasSigmas) return undefined;
  return karrasSigmas(high, low, steps);
}

/** @param rho 7 is the paper's choice */
export function karrasSigmas(high: number, low: number, steps: number, rho = 7): Float64Array {
  const highRoot = high ** (1 / rho);
  const lowRoot = low ** (1 / rho);
  return linspace(0, 1, steps).map((ramp) => (highRoot + ramp * (lowRoot - highRoot)) ** rho);
}

/** The (fractional) training timestep of a noise level, interpolated linearly in the logarithm. */
export function timestepFinder(levels: Float32Array): (sigma: number) => number {
  const logs = logFloat32(levels);
  return (sigma) => {
    const log = Math.log(Math.max(sigma, 1e-10));
    const low = indexBelow(logs, log);
    const weight = Math.min(1, Math.max(0, (logs[low] - log) / (logs[low] - logs[low + 1])));
    return (1 - weight) * low + weight * (low + 1);
  };
}

/** As {@link timestepFinder}, for a noise level in float32, where every operation rounds to it. */
export function timestepFinderFloat32(levels: Float32Array): (sigma: number) => number {
  const logs = logFloat32(levels);
  return (sigma) => {
    const [log] = logFloat32(Float32Array.of(Math.max(sigma, 1e-10)));
    const low = indexBelow(logs, log);
    const ratio = fround(fround(logs[low] - log) / fround(logs[low] - logs[low + 1]));
    const weight = Math.min(1, Math.max(0, ratio));
    return fround(fround(fround(1 - weight) * low) + fround(weight * (low + 1)));
  };
}

/** The last index whose value is not above `log`, but never the last of all. */
function indexBelow(logs: Float32Array, log: number): number {
  let low = logs.length - 2;
  while (low > 0 && logs[low] > log) low--;
  return low;
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
