import { derivative, weightedSum } from './prediction';
import type { SchedulerParameters } from './scheduler-config';
import { type SigmaSchedule, timestepsOfCalls, twoCallParameters, TwoCallScheduler } from './sigma-scheduler';

/**
 * Heun's method over the noise level: an Euler step, then the same step with the mean of the derivatives at both ends.
 * Source: Karras et al., "Elucidating the Design Space of Diffusion-Based Generative Models" (2022), algorithm 1;
 * diffusers' HeunDiscreteScheduler.
 */
export class HeunDiscreteScheduler extends TwoCallScheduler {
  static readonly parameters: SchedulerParameters = {
    ...twoCallParameters,
    sigma_min: null,
    sigma_max: null,
    clip_sample: false,
    clip_sample_range: 1,
  };

  /** The derivative at the start of the step. */
  private first: Float32Array = new Float32Array(0);

  protected override schedule(steps: number): SigmaSchedule {
    const { sigmas, timesteps } = super.schedule(steps);
    return { sigmas, timesteps: timestepsOfCalls(timesteps, (step) => timesteps[step + 1]) };
  }

  protected secondSigma(step: number): number {
    return this.sigmas[step + 1];
  }

  protected advance(modelOutput: Float32Array, sample: Float32Array): Float32Array {
    // 1. The derivative at the noise level of this call.
    const newest = derivative(this.config, this.currentSigma(), modelOutput, sample);
    const current = this.currentStep();
    const step = Math.fround(this.sigmas[current + 1] - this.sigmas[current]);

    // 2. First call of a step: a straight line to the next noise level, to be corrected.
    if (!this.origin) {
      this.origin = sample;
      this.first = newest;
      return weightedSum([1, step], [sample, newest]);
    }

    // 3. Second call: the step again, with the mean of both derivatives.
    const from = this.origin;
    this.origin = undefined;
    return weightedSum([1, step], [from, weightedSum([0.5, 0.5], [this.first, newest])]);
  }
}
