import { finiteAlphasCumprod, noiseLevels } from './noise-schedule';
import { DiscreteScheduler } from './discrete-scheduler';
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

/** The parameters of every solver. */
export const solverParameters: SchedulerParameters = {
  solver_order: 2,
  ...dynamicThresholding,
  ...sigmaSpacing,
  use_flow_sigmas: false,
  use_dynamic_shifting: false,
};

/** With fewer steps than this the last ones are of lower order, for stability. */
const fewSteps = 15;

/** A solver of high order over lambda (DPM-Solver, DEIS, UniPC). Its timesteps are whole numbers. */
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
    super(config, finiteAlphasCumprod(config));
    const { algorithmType, solverType } = config;
    if (algorithmTypes && !algorithmTypes.includes(algorithmType))
      throw new SchedulerError(`algorithm_type "${algorithmType}" is not supported.`);
    if (!['midpoint', 'heun', 'logrho', 'bh1', 'bh2'].includes(solverType))
      throw new SchedulerError(`solver_type "${solverType}" is not supported.`);
  }

  protected start(steps: number): Float64Array {
    const { sigmas, timesteps } = this.schedule(noiseLevels(this.alphas), steps);
    this.levels = Array.from(sigmas, levelOf);
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

  /** @param levels noise levels of the training timesteps */
  private schedule(levels: Float32Array, steps: number): { sigmas: Float32Array; timesteps: Float64Array } {
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

/** Converts a noise level from the scaling of Karras et al., where alpha is 1. */
function levelOf(ratio: number): Level {
  const alpha = 1 / Math.sqrt(ratio ** 2 + 1);
  return { alpha, sigma: ratio * alpha, lambda: -Math.log(ratio) };
}
