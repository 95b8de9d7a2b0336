import { derivative, weightedSum } from './prediction';
import { type SchedulerParameters, sigmaSpacing } from './scheduler-config';
import { SigmaScheduler } from './sigma-scheduler';

/**
 * Euler's method over the noise level.
 * Source: Karras et al., "Elucidating the Design Space of Diffusion-Based Generative Models" (2022), algorithm 2
 * without churn and correction; diffusers' EulerDiscreteScheduler.
 */
export class EulerDiscreteScheduler extends SigmaScheduler {
  static readonly parameters: SchedulerParameters = {
    ...sigmaSpacing,
    interpolation_type: 'linear',
    sigma_min: null,
    sigma_max: null,
    timestep_type: 'discrete',
    rescale_betas_zero_snr: false,
    final_sigmas_type: 'zero',
  };

  protected advance(modelOutput: Float32Array, sample: Float32Array): Float32Array {
    // 1. The derivative at this noise level.
    const sigma = this.sigmas[this.stepIndex];
    const slope = derivative(this.config, sigma, modelOutput, sample);

    // 2. A straight line to the next noise level.
    return weightedSum([1, Math.fround(this.sigmas[this.stepIndex + 1] - sigma)], [sample, slope]);
  }
}
