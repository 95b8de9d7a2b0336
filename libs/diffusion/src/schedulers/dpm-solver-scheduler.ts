import type { Generator } from '../random/generator';
import { noise, picture } from './prediction';
import { addNoise } from './scheduler';
import { type SchedulerConfig, SchedulerError } from './scheduler-config';
import { type Level, SolverScheduler } from './solver-scheduler';

/**
 * One step of a DPM solver: the exact solution of the linear part of the equation, and weights for the part that the
 * denoiser gives, as a polynomial in lambda through its outputs. The four forms of the equation differ in three numbers
 * only.
 * Source: Lu et al., "DPM-Solver" (2022), equations 3.4 and 3.7, and "DPM-Solver++" (2022), equations 8, 9 and appendix
 * B.
 */
export interface ExponentialStep {
  /** Factor of the sample at the start of the step. */
  sampleWeight: number;
  /** Weights of the polynomial's value and its derivatives at the start of the step, in lengths of the step. */
  constant: number;
  linear: number;
  quadratic: number;
  /** Standard deviation of the fresh noise. */
  deviation: number;
}

/** The part that the multistep and the singlestep DPM solvers have in common. */
export abstract class DpmSolverScheduler extends SolverScheduler {
  /** Whether the solver integrates over predicted noise and not over pictures. */
  private readonly ofNoise: boolean;
  private readonly stochastic: boolean;

  constructor(config: SchedulerConfig, algorithmTypes: readonly string[]) {
    super(config, [...algorithmTypes, 'deis']);
    const { algorithmType, finalSigmasType } = config;
    if (algorithmType.endsWith('dpmsolver') && finalSigmasType === 'zero')
      throw new SchedulerError(`algorithm_type "${algorithmType}" needs the final_sigmas_type "sigma_min".`);
    this.ofNoise = algorithmType.endsWith('dpmsolver');
    this.stochastic = algorithmType.startsWith('sde-');
  }

  /** The picture, or the noise, that the model predicts. */
  protected outputOf(modelOutput: Float32Array, sample: Float32Array): Float32Array {
    return (this.ofNoise ? noise : picture)(this.config, this.levels[this.stepIndex], modelOutput, sample);
  }

  /** The weights of a step. A step to no noise at all (an infinite lambda) can only be made over pictures. */
  protected exponentialStep(from: Level, to: Level): ExponentialStep {
    const { ofNoise, stochastic } = this;
    const h = to.lambda - from.lambda;
    const gain = ofNoise ? to.sigma * (stochastic ? 2 : 1) : to.alpha;
    // The stochastic equation over pictures forgets the sample twice as fast.
    const decay = ofNoise ? -h : stochastic ? 2 * h : h;
    // diffusers adds this half for the stochastic equation, although the Taylor series would subtract it.
    const half = stochastic ? -0.5 : 0.5;
    const forgets = stochastic && !ofNoise ? Math.exp(-h) : 1;
    return {
      sampleWeight: ofNoise ? to.alpha / from.alpha : (to.sigma / from.sigma) * forgets,
      constant: -gain * Math.expm1(-decay),
      linear: gain * (Math.expm1(-decay) / decay + 1),
      quadratic: gain * (half - (Math.expm1(-decay) + decay) / decay ** 2),
      deviation: stochastic ? to.sigma * Math.sqrt(Math.abs(Math.expm1(ofNoise ? 2 * h : -2 * h))) : 0,
    };
  }

  /** Adds fresh noise, in place of what a stochastic equation has forgotten. */
  protected renew(sample: Float32Array, { deviation }: ExponentialStep, generator: () => Generator): Float32Array {
    if (this.stochastic) addNoise(sample, deviation, generator());
    return sample;
  }
}
