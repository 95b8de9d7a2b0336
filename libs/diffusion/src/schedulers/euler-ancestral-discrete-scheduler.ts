import { derivative, weightedSum } from './prediction';
import type { StepOptions } from './scheduler';
import type { SchedulerParameters } from './scheduler-config';
import { SigmaScheduler } from './sigma-scheduler';

/**
 * Euler's method over the noise level with fresh noise at each step.
 * Source: Katherine Crowson's k-diffusion, sample_euler_ancestral; diffusers' EulerAncestralDiscreteScheduler.
 */
export class EulerAncestralDiscreteScheduler extends SigmaScheduler {
  static readonly parameters: SchedulerParameters = { rescale_betas_zero_snr: false };

  override readonly usesNoise = true;

  protected advance(modelOutput: Float32Array, sample: Float32Array, options: StepOptions): Float32Array {
    const sigma = this.sigmas[this.stepIndex];
    const next = this.sigmas[this.stepIndex + 1];

    // 1. Split the next noise level into the target of the line and the added fresh noise: next^2 = down^2 + up^2.
    const up = (next * Math.sqrt(sigma ** 2 - next ** 2)) / sigma;
    const down = next ** 2 / sigma;

    // 2. A straight line to the lower level, then the noise.
    const slope = derivative(this.config.predictionType, sigma, modelOutput, sample);
    const step = Math.fround(down - sigma);
    const fresh = this.noise(options, sample.length);
    return weightedSum([1, step, up], [sample, slope, fresh]);
  }
}
