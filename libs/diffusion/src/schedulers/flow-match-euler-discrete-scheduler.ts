import { shiftSigmas } from './flow-sigmas';
import { flowPicture, weightedSum } from './prediction';
import { type NoiseLevel, type RunSize, Scheduler } from './scheduler';
import { type SchedulerConfig, type SchedulerParameters, sigmaSpacing } from './scheduler-config';
import { respaceSigmas } from './sigmas';
import { linspace } from './timesteps';

/**
 * Euler's method for models of flow matching, whose samples are (1 - sigma) * x0 + sigma * noise, and which predict
 * noise - x0. Timesteps are noise levels in thousandths, not whole numbers.
 * Source: Esser et al., "Scaling Rectified Flow Transformers for High-Resolution Image Synthesis" (2024), equations 1
 * and 13; diffusers' FlowMatchEulerDiscreteScheduler with the noise levels that its pipelines give it.
 */
export class FlowMatchEulerDiscreteScheduler extends Scheduler {
  static readonly parameters: SchedulerParameters = {
    ...sigmaSpacing,
    shift: 1,
    use_dynamic_shifting: false,
    base_shift: 0.5,
    max_shift: 1.15,
    base_image_seq_len: 256,
    max_image_seq_len: 4096,
    time_shift_type: 'exponential',
    shift_terminal: null,
    invert_sigmas: false,
    stochastic_sampling: false,
  };

  /** The noise level at the start of each step, and that of the picture, which is 0. */
  protected sigmas: Float32Array = new Float32Array(0);

  constructor(protected readonly config: SchedulerConfig) {
    super();
  }

  expectedPicture(modelOutput: Float32Array, timestep: number, seen: Float32Array): Float32Array {
    return flowPicture(modelOutput, timestep / this.config.numTrainTimesteps, seen);
  }

  protected start(steps: number, size?: RunSize): Float64Array {
    const { config } = this;
    const even = linspace(1, this.lowestSigma(steps), steps);
    const shifted = shiftSigmas(even, config.shift, config, size);
    const sigmas = respaceSigmas(config, shifted[0], shifted[steps - 1], steps) ?? shifted;
    this.sigmas = Float32Array.of(...sigmas, 0);
    return Float64Array.from(sigmas, (sigma) => Math.fround(Math.fround(sigma) * config.numTrainTimesteps));
  }

  /** The noise level before the last step, not yet shifted. */
  protected lowestSigma(steps: number): number {
    return 1 / steps;
  }

  protected advance(modelOutput: Float32Array, sample: Float32Array): Float32Array {
    const step = Math.fround(this.sigmas[this.stepIndex + 1] - this.sigmas[this.stepIndex]);
    return weightedSum([1, step], [sample, modelOutput]);
  }

  protected nextLevel(): NoiseLevel {
    // In the middle of a step of two calls diffusers adds the noise of its end.
    const sigma = this.sigmas[Math.ceil(this.stepIndex / this.order)];
    return { alpha: 1 - sigma, sigma };
  }

  protected maxSteps(): number {
    return this.config.numTrainTimesteps;
  }
}
