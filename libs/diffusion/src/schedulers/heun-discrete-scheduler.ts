import { BaseScheduler } from './base-scheduler';
import { alphasCumprod } from './noise-schedule';
import { derivative, weightedSum } from './prediction';
import type { SchedulerConfig, SchedulerParameters } from './scheduler-config';
import { initialNoiseSigma, scaleToUnitVariance, sigmaSchedule } from './sigmas';

/** An Euler step to be corrected. */
interface Trial {
  sample: Float32Array;
  derivative: Float32Array;
  step: number;
}

/**
 * Heun's method over the noise level: an Euler step, then the same step with the mean of the derivatives at both ends. All
 * steps but the last take two U-Net evaluations, so a run of n steps has 2n - 1 timesteps.
 * Source: Karras et al., "Elucidating the Design Space of Diffusion-Based Generative Models" (2022), algorithm 1;
 * diffusers' HeunDiscreteScheduler.
 */
export class HeunDiscreteScheduler extends BaseScheduler {
  static readonly parameters: SchedulerParameters = {
    beta_start: 0.00085,
    beta_end: 0.012,
    use_karras_sigmas: false,
    use_exponential_sigmas: false,
    use_beta_sigmas: false,
    sigma_min: null,
    sigma_max: null,
    clip_sample: false,
    clip_sample_range: 1,
  };

  override readonly order = 2;
  private readonly alphas: Float32Array;
  private sigmas: Float32Array = new Float32Array(0);
  private trial: Trial | undefined;

  constructor(config: SchedulerConfig) {
    super(config);
    this.alphas = alphasCumprod(config);
  }

  override scaleModelInput(sample: Float32Array): Float32Array {
    return scaleToUnitVariance(sample, this.sigmas[this.level()]);
  }

  protected start(steps: number): Float64Array {
    const { sigmas, timesteps } = sigmaSchedule(this.config, this.alphas, steps);
    this.sigmas = sigmas;
    this.initNoiseSigma = initialNoiseSigma(this.config, sigmas);
    this.trial = undefined;
    return Float64Array.from({ length: 2 * steps - 1 }, (_, i) => timesteps[Math.ceil(i / 2)]);
  }

  protected advance(modelOutput: Float32Array, sample: Float32Array): Float32Array {
    // 1. The derivative at the noise level of this call.
    const level = this.level();
    const { predictionType, clipRange } = this.config;
    const newest = derivative(predictionType, this.sigmas[level], modelOutput, sample, clipRange);

    // 2. First call of a step: a straight line to the next noise level, to be corrected.
    if (!this.trial) {
      const step = Math.fround(this.sigmas[level + 1] - this.sigmas[level]);
      this.trial = { sample, derivative: newest, step };
      return weightedSum([1, step], [sample, newest]);
    }

    // 3. Second call: the step again, with the mean of both derivatives.
    const { sample: from, derivative: first, step } = this.trial;
    this.trial = undefined;
    const mean = weightedSum([0.5, 0.5], [first, newest]);
    return weightedSum([1, step], [from, mean]);
  }

  /** Calls 0, 1, 2, 3, 4 are at the noise levels 0, 1, 1, 2, 2. */
  private level(): number {
    return Math.ceil(this.stepIndex / 2);
  }
}
