import type { Generator } from '../random/generator';
import { derivative, weightedSum } from './prediction';
import type { SchedulerParameters } from './scheduler-config';
import { SigmaScheduler } from './sigma-scheduler';

/**
 * Euler's method over the noise level with fresh noise at each step.
 * Source: Katherine Crowson's k-diffusion, sample_euler_ancestral; diffusers' EulerAncestralDiscreteScheduler.
 */
export class EulerAncestralDiscreteScheduler extends SigmaScheduler {
  static readonly parameters: SchedulerParameters = { rescale_betas_zero_snr: false };

  protected advance(modelOutput: Float32Array, sample: Float32Array, generator: () => Generator): Float32Array {
    const sigma = this.sigmas[this.stepIndex];
    const next = this.sigmas[this.stepIndex + 1];

    // 1. Split the next noise level into the target of the line and the added fresh noise: next^2 = down^2 + up^2.
    const up = (next * Math.sqrt(sigma ** 2 - next ** 2)) / sigma;
    const down = next ** 2 / sigma;

    // 2. A straight line to the lower level, then the noise.
    const slope = derivative(this.config, sigma, modelOutput, sample);
    return weightedSum([1, Math.fround(down - sigma), up], [sample, slope, generator().randn(sample.length)]);
  }
}
