import type { SchedulerConfig } from './scheduler-config';
import { betaQuantile, logFloat32 } from './special-functions';
import { linspace, spacedTimesteps } from './timesteps';

const { fround } = Math;

/**
 * The noise levels of a run and their timesteps in the k-diffusion family, in double precision and without the end of
 * the run. Timesteps are fractional.
 * @param levels noise levels of the training timesteps
 * @param rounded rounds timesteps before their noise levels are interpolated
 */
export function spacedSigmas(
  config: SchedulerConfig,
  levels: Float32Array,
  steps: number,
  rounded: (timestep: number) => number,
): { sigmas: Float64Array; timesteps: Float64Array } {
  const timesteps = spacedTimesteps(config, steps, levels.length).map(rounded);
  const sigmas = timesteps.map((t) => interpolate(levels, t));
  const respaced = respaceSigmas(config, sigmas[0], sigmas[steps - 1], steps);
  return respaced ? { sigmas: respaced, timesteps: respaced.map(timestepFinder(levels)) } : { sigmas, timesteps };
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
  return config.useKarrasSigmas ? karrasSigmas(high, low, steps) : undefined;
}

/** @param rho 7 is the paper's choice */
export function karrasSigmas(high: number, low: number, steps: number, rho = 7): Float64Array {
  const highRoot = high ** (1 / rho);
  const lowRoot = low ** (1 / rho);
  return linspace(0, 1, steps).map((ramp) => (highRoot + ramp * (lowRoot - highRoot)) ** rho);
}

/**
 * The (fractional) training timestep of a noise level, interpolated linearly in the logarithm.
 * @param float32 rounds every operation to float32, as torch does with a noise level that is one
 */
export function timestepFinder(levels: Float32Array, { float32 = false } = {}): (sigma: number) => number {
  const logs = logFloat32(levels);
  const round = float32 ? fround : (value: number) => value;
  return (sigma) => {
    const positive = Math.max(sigma, 1e-10);
    const log = float32 ? logFloat32(Float32Array.of(positive))[0] : Math.log(positive);
    // The last index whose value is not above `log`, but never the last of all.
    let low = logs.length - 2;
    while (low > 0 && logs[low] > log) low--;
    const ratio = round(round(logs[low] - log) / round(logs[low] - logs[low + 1]));
    const weight = Math.min(1, Math.max(0, ratio));
    return round(round(round(1 - weight) * low) + round(weight * (low + 1)));
  };
}

/** `numpy.interp` over the indices of `levels`. */
function interpolate(levels: Float32Array, t: number): number {
  const index = Math.floor(t);
  if (index >= levels.length - 1) return levels[levels.length - 1];
  return (levels[index + 1] - levels[index]) * (t - index) + levels[index];
}
