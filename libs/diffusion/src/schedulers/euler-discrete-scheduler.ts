import { BaseScheduler } from './base-scheduler';
import { finiteAlphasCumprod } from './noise-schedule';
import { derivative, weightedSum } from './prediction';
import type { SchedulerConfig, SchedulerParameters } from './scheduler-config';
import { initialNoiseSigma, scaleToUnitVariance, sigmaSchedule } from './sigmas';

/**
 * Euler's method over the noise level.
 * Source: Karras et al., "Elucidating the Design Space of Diffusion-Based Generative Models" (2022), algorithm 2 without
 * churn and correction; diffusers' EulerDiscreteScheduler.
 */
export class EulerDiscreteScheduler extends BaseScheduler {
  static readonly parameters: SchedulerParameters = {
    interpolation_type: 'linear',
    use_karras_sigmas: false,
    use_exponential_sigmas: false,
    use_beta_sigmas: false,
    sigma_min: null,
    sigma_max: null,
    timestep_type: 'discrete',
    rescale_betas_zero_snr: false,
    final_sigmas_type: 'zero',
  };

  private readonly alphas: Float32Array;
  private sigmas: Float32Array = new Float32Array(0);

  constructor(config: SchedulerConfig) {
    super(config);
    this.alphas = finiteAlphasCumprod(config);
  }

  override scaleModelInput(sample: Float32Array): Float32Array {
    return scaleToUnitVariance(sample, this.sigmas[this.stepIndex]);
  }

  protected start(steps: number): Float64Array {
    const { sigmas, timesteps } = sigmaSchedule(this.config, this.alphas, steps);
    this.sigmas = sigmas;
    this.initNoiseSigma = initialNoiseSigma(this.config, sigmas);
    return timesteps;
  }

  protected advance(modelOutput: Float32Array, sample: Float32Array): Float32Array {
    // 1. The derivative at this noise level.
    const sigma = this.sigmas[this.stepIndex];
    const slope = derivative(this.config.predictionType, sigma, modelOutput, sample);

    // 2. A straight line to the next noise level.
    const step = Math.fround(this.sigmas[this.stepIndex + 1] - sigma);
    return weightedSum([1, step], [sample, slope]);
  }
}
