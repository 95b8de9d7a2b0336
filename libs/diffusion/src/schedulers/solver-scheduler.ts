import { shiftSigmas } from './flow-sigmas';
import { finiteAlphasCumprod, noiseLevels } from './noise-schedule';
import { DiscreteScheduler } from './discrete-scheduler';
import { flowPicture } from './prediction';
import type { RunSize } from './scheduler';
import {
  dynamicThresholding,
  type SchedulerConfig,
  SchedulerError,
  type SchedulerParameters,
  sigmaSpacing,
} from './scheduler-config';
import { respaceSigmas, timestepFinder } from './sigmas';
import { logFloat32 } from './special-functions';
import { linspace, roundHalfEven, spacedTimesteps } from './timesteps';

/** A noise level in the variance-preserving form of the solvers: sample = alpha * x0 + sigma * noise. */
export interface Level {
  alpha: number;
  sigma: number;
  /** Half the logarithm of the signal-to-noise ratio, log(alpha / sigma); infinite if there is no noise. */
  lambda: number;
}

/** Noise levels of a run, with that of its end, and timesteps. */
interface SolverSchedule {
  sigmas: Float32Array;
  timesteps: Float64Array;
}

/** The parameters of every solver. */
export const solverParameters: SchedulerParameters = {
  solver_order: 2,
  ...dynamicThresholding,
  ...sigmaSpacing,
  use_flow_sigmas: false,
  flow_shift: 1,
  use_dynamic_shifting: false,
  time_shift_type: 'exponential',
};

/** With fewer steps than this the last ones are of lower order, for stability. */
const fewSteps = 15;

/**
 * A solver of high order over lambda (DPM-Solver, DEIS, UniPC), for noise of betas or of flow matching. Its timesteps
 * are whole numbers.
 */
export abstract class SolverScheduler extends DiscreteScheduler {
  /** The noise level at the start of each step, and that at the end of the run. */
  protected levels: Level[] = [];
  /** Predictions of the model for the last samples, pictures or noise, the newest first. */
  protected outputs: Float32Array[] = [];

  /**
   * diffusers treats the types of each solver as those of the others, so that their configurations can be used.
   * @param algorithmTypes that the solver has
   */
  constructor(config: SchedulerConfig, algorithmTypes?: readonly string[]) {
    // Flow matching has no betas.
    super(config, config.useFlowSigmas ? new Float32Array(0) : finiteAlphasCumprod(config));
    const { algorithmType, solverType } = config;
    if (config.useFlowSigmas) refuseBesideFlowSigmas(config);
    if (algorithmTypes && !algorithmTypes.includes(algorithmType))
      throw new SchedulerError(`algorithm_type "${algorithmType}" is not supported.`);
    if (!['midpoint', 'heun', 'logrho', 'bh1', 'bh2'].includes(solverType))
      throw new SchedulerError(`solver_type "${solverType}" is not supported.`);
  }

  override expectedPicture(modelOutput: Float32Array, timestep: number, seen: Float32Array): Float32Array {
    const { useFlowSigmas, numTrainTimesteps } = this.config;
    if (useFlowSigmas) return flowPicture(modelOutput, timestep / numTrainTimesteps, seen);
    return super.expectedPicture(modelOutput, timestep, seen);
  }

  protected start(steps: number, size?: RunSize): Float64Array {
    const { useFlowSigmas } = this.config;
    const { sigmas, timesteps } = useFlowSigmas
      ? this.flowSchedule(steps, size)
      : this.schedule(noiseLevels(this.alphas), steps);
    this.levels = Array.from(sigmas, useFlowSigmas ? flowLevelOf : levelOf);
    this.outputs = [];
    return timesteps;
  }

  protected override nextLevel(): Level {
    return this.levels[this.stepIndex];
  }

  protected override maxSteps(): number {
    return this.config.numTrainTimesteps - 1;
  }

  /** Keeps a prediction. @param kept how many of the last ones are kept */
  protected keep(output: Float32Array, kept = this.config.solverOrder): void {
    this.outputs = [output, ...this.outputs.slice(0, kept - 1)];
  }

  /** Steps of the run that are left, this one included. */
  protected get stepsLeft(): number {
    return this.timesteps.length - this.stepIndex;
  }

  /** Whether the last steps of this run are to be of lower order. */
  protected get endsLower(): boolean {
    return this.config.lowerOrderFinal && this.timesteps.length < fewSteps;
  }

  /** Noise levels of a run of flow matching, not yet shifted and without the end. */
  protected flowSigmas(steps: number): Float64Array {
    const signal = linspace(1, 1 / this.config.numTrainTimesteps, steps + 1).reverse();
    return signal.slice(0, steps).map((share) => 1 - share);
  }

  private flowSchedule(steps: number, size: RunSize | undefined): SolverSchedule {
    const { config } = this;
    const sigmas = shiftSigmas(this.flowSigmas(steps), config.flowShift, config, size);
    // diffusers leaves some signal, whose logarithm would be infinite.
    if (Math.abs(sigmas[0] - 1) < 1e-6) sigmas[0] -= 1e-6;
    const timesteps = sigmas.map((sigma) => Math.floor(sigma * config.numTrainTimesteps));
    return { sigmas: Float32Array.of(...sigmas, 0), timesteps };
  }

  /** @param levels noise levels of the training timesteps */
  private schedule(levels: Float32Array, steps: number): SolverSchedule {
    const { config } = this;
    const [min, max] = [levels[0], levels[levels.length - 1]];
    const withEnd = (sigmas: Float64Array) =>
      Float32Array.of(...sigmas, config.finalSigmasType === 'sigma_min' ? min : 0);
    const respaced = respaceSigmas(config, max, min, steps) ?? (config.useLuLambdas ? luSigmas(max, min, steps) : null);
    if (respaced) {
      // diffusers rounds Karras' and Lu's timesteps, but truncates the others.
      const rounds = (config.useKarrasSigmas || config.useLuLambdas) && config.betaSchedule !== 'squaredcos_cap_v2';
      const timestepOf = timestepFinder(levels);
      const whole = rounds ? roundHalfEven : Math.floor;
      return { sigmas: withEnd(respaced), timesteps: respaced.map((sigma) => whole(timestepOf(sigma))) };
    }
    const span = levels.filter((ratio) => !(-Math.log(ratio) < config.lambdaMinClipped)).length;
    const timesteps = spacedTimesteps(config, steps, span, true).map(roundHalfEven);
    return { sigmas: withEnd(timesteps.map((t) => levels[Math.min(t, levels.length - 1)])), timesteps };
  }
}

/** Noise levels with evenly spaced lambdas. Source: Lu et al., "DPM-Solver" (2022), section 3.4. */
function luSigmas(max: number, min: number, steps: number): Float64Array {
  const [low, high] = logFloat32(Float32Array.of(min, max));
  return linspace(high, low, steps).map(Math.exp);
}

/** diffusers' solvers have no prediction of flow, or no end without noise, together with these. */
function refuseBesideFlowSigmas(config: SchedulerConfig): void {
  const { useKarrasSigmas, useExponentialSigmas, useBetaSigmas, useLuLambdas, finalSigmasType, predictX0 } = config;
  if (useKarrasSigmas || useExponentialSigmas || useBetaSigmas || useLuLambdas)
    throw new SchedulerError('use_flow_sigmas cannot be used with another spacing of the noise levels.');
  if (finalSigmasType !== 'zero' || !predictX0)
    throw new SchedulerError('use_flow_sigmas needs the final_sigmas_type "zero" and predict_x0.');
}

/** A noise level of flow matching, whose shares of signal and noise add up to 1. */
function flowLevelOf(sigma: number): Level {
  return { alpha: 1 - sigma, sigma, lambda: Math.log((1 - sigma) / sigma) };
}

/** Converts a noise level from the scaling of Karras et al., where alpha is 1. */
function levelOf(ratio: number): Level {
  const alpha = 1 / Math.sqrt(ratio ** 2 + 1);
  return { alpha, sigma: ratio * alpha, lambda: -Math.log(ratio) };
}
