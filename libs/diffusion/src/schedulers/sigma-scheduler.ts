import { finiteAlphasCumprod, noiseLevels } from './noise-schedule';
import { DiscreteScheduler } from './discrete-scheduler';
import type { NoiseLevel } from './scheduler';
import { type SchedulerConfig, type SchedulerParameters, sigmaSpacing } from './scheduler-config';
import { spacedSigmas } from './sigmas';

/** The noise levels of a run, and what the denoiser is told of them. */
export interface SigmaSchedule {
  /** float32, one per step and one for the end of the run. */
  sigmas: Float32Array;
  /** One per call of the denoiser. */
  timesteps: Float64Array;
}

/** A scheduler that goes from one noise level to the next and gives the denoiser a sample of unit variance. */
export abstract class SigmaScheduler extends DiscreteScheduler {
  /** The noise level at the start of each step of this run; the last one is that of the picture. */
  protected sigmas: Float32Array = new Float32Array(0);
  /** Noise levels of the training timesteps. */
  protected readonly levels: Float32Array;

  constructor(config: SchedulerConfig) {
    super(config, finiteAlphasCumprod(config));
    this.levels = noiseLevels(this.alphas);
  }

  /** Scales the k-diffusion family's sample, x0 + sigma * noise, to the form that the denoiser expects. */
  override scaleModelInput(sample: Float32Array): Float32Array {
    const scale = 1 / Math.sqrt(this.currentSigma() ** 2 + 1);
    return sample.map((value) => value * scale);
  }

  protected start(steps: number): Float64Array {
    const { sigmas, timesteps } = this.schedule(steps);
    this.sigmas = sigmas;
    const max = sigmas.reduce((a, b) => Math.max(a, b));
    this.initNoiseSigma = this.config.timestepSpacing === 'leading' ? Math.fround(Math.sqrt(max ** 2 + 1)) : max;
    return timesteps;
  }

  protected schedule(steps: number): SigmaSchedule {
    const { sigmas, timesteps } = spacedSigmas(this.config, this.levels, steps, Math.fround);
    const end = this.config.finalSigmasType === 'sigma_min' ? this.levels[0] : 0;
    return { sigmas: Float32Array.of(...sigmas, end), timesteps: timesteps.map(Math.fround) };
  }

  protected override nextLevel(): NoiseLevel {
    return { alpha: 1, sigma: this.sigmas[this.stepIndex] };
  }

  /** The noise level of the sample that the denoiser sees next. */
  protected currentSigma(): number {
    return this.sigmas[this.stepIndex];
  }
}

/** The parameters that every class with two calls per step has. */
export const twoCallParameters: SchedulerParameters = { beta_start: 0.00085, beta_end: 0.012, ...sigmaSpacing };

/**
 * A scheduler over noise levels whose steps take two calls of the denoiser each, except the last, which takes one: a
 * run of n steps has 2n - 1 timesteps. The second call is for a trial sample; the step then starts again from its
 * origin.
 */
export abstract class TwoCallScheduler extends SigmaScheduler {
  override readonly order = 2;
  /** The sample at the start of the step whose second call is next; undefined if the first call of a step is next. */
  protected origin: Float32Array | undefined;

  protected override start(steps: number): Float64Array {
    this.origin = undefined;
    return super.start(steps);
  }

  /** The step that the next call belongs to, from 0. */
  protected currentStep(): number {
    return this.stepIndex >> 1;
  }

  /** In the middle of a step diffusers adds the noise of its end. */
  protected override nextLevel(): NoiseLevel {
    return { alpha: 1, sigma: this.sigmas[(this.stepIndex + 1) >> 1] };
  }

  protected override currentSigma(): number {
    return this.origin ? this.secondSigma(this.currentStep()) : this.sigmas[this.currentStep()];
  }

  protected abstract secondSigma(step: number): number;
}

/**
 * The timesteps of all calls of a run.
 * @param first timestep of the first call of each step
 * @param second that of the second call
 */
export function timestepsOfCalls(first: Float64Array, second: (step: number) => number): Float64Array {
  return Float64Array.from({ length: 2 * first.length - 1 }, (_, call) =>
    call % 2 === 0 ? first[call / 2] : second((call - 1) / 2),
  );
}
