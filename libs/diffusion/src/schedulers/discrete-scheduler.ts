import { alphasCumprod } from './noise-schedule';
import { predictedData } from './prediction';
import { type NoiseLevel, Scheduler } from './scheduler';
import type { SchedulerConfig } from './scheduler-config';

/** A scheduler of models that were trained on a fixed number of timesteps, whose noise follows from betas. */
export abstract class DiscreteScheduler extends Scheduler {
  /** @param alphas the share of signal at each training timestep */
  constructor(
    protected readonly config: SchedulerConfig,
    protected readonly alphas = alphasCumprod(config),
  ) {
    super();
  }

  expectedPicture(modelOutput: Float32Array, timestep: number, seen: Float32Array): Float32Array {
    const index = Math.min(this.alphas.length - 1, Math.max(0, Math.round(timestep)));
    // The share of signal may be 0 at the last timestep, where dividing by it would give no number.
    const alpha = Math.sqrt(Math.max(this.alphas[index], 1e-6));
    const { sample, output, scale } = predictedData(this.config.predictionType, alpha, Math.sqrt(1 - alpha * alpha));
    return seen.map((value, i) => (value * sample + modelOutput[i] * output) * scale);
  }

  protected maxSteps(): number {
    return this.config.numTrainTimesteps;
  }

  protected nextLevel(): NoiseLevel {
    return this.levelAt(this.timesteps[this.stepIndex]);
  }

  /** Signal and noise of a sample at a training timestep. */
  protected levelAt(timestep: number): NoiseLevel {
    const share = this.alphas[timestep];
    return { alpha: Math.sqrt(share), sigma: Math.sqrt(1 - share) };
  }
}
