import { logFloat32 } from './log-float32';
import { noiseLevels } from './noise-schedule';
import type { SchedulerConfig } from './scheduler-config';
import type { SigmaSchedule } from './sigmas';
import { respaceSigmas, timestepFinder } from './sigmas';
import { linspace, roundHalfEven, spacedTimesteps } from './timesteps';

/** A noise level in the variance-preserving form of the DPM solvers: sample = alpha * x0 + sigma * noise. */
export interface Level {
  alpha: number;
  sigma: number;
  /** Half the logarithm of the signal-to-noise ratio, log(alpha / sigma); infinite if there is no noise. */
  lambda: number;
}

/** Converts a noise level from the scaling of Karras et al., where alpha is 1. */
export function levelOf(ratio: number): Level {
  const alpha = 1 / Math.sqrt(ratio ** 2 + 1);
  return { alpha, sigma: ratio * alpha, lambda: -Math.log(ratio) };
}

/** Noise levels with evenly spaced lambdas. Source: Lu et al., "DPM-Solver" (2022), section 3.4. */
function luSigmas({ useLuLambdas }: SchedulerConfig, levels: Float32Array, steps: number): Float64Array | undefined {
  if (!useLuLambdas) return undefined;
  const [low, high] = logFloat32(Float32Array.of(levels[0], levels[levels.length - 1]));
  return linspace(high, low, steps).map(Math.exp);
}

/** The schedule of the DPM solvers (DPM-Solver++, UniPC), whose timesteps are whole numbers. */
export function solverSchedule(config: SchedulerConfig, alphas: Float32Array, steps: number): SigmaSchedule {
  const levels = noiseLevels(alphas);
  const respaced =
    respaceSigmas(config, levels[levels.length - 1], levels[0], steps) ?? luSigmas(config, levels, steps);
  if (respaced) {
    const timestepOf = timestepFinder(levels);
    return { sigmas: withEnd(respaced), timesteps: respaced.map((sigma) => wholeTimestep(timestepOf(sigma))) };
  }
  const span = levels.length - levels.filter((ratio) => -Math.log(ratio) < config.lambdaMinClipped).length;
  const timesteps = spacedTimesteps(config, { steps, span, dropsLast: true }).map(roundHalfEven);
  return { sigmas: withEnd(timesteps.map((t) => levels[Math.min(t, levels.length - 1)])), timesteps };

  function wholeTimestep(timestep: number): number {
    // diffusers rounds Karras' and Lu's timesteps, but truncates the others.
    const rounds = (config.useKarrasSigmas || config.useLuLambdas) && config.betaSchedule !== 'squaredcos_cap_v2';
    return rounds ? roundHalfEven(timestep) : Math.floor(timestep);
  }

  function withEnd(sigmas: Float64Array): Float32Array {
    return Float32Array.of(...sigmas, config.finalSigmasType === 'sigma_min' ? levels[0] : 0);
  }
}
