import { BaseScheduler } from './base-scheduler';
import { alphasCumprod } from './noise-schedule';
import type { SchedulerConfig } from './scheduler-config';
import { distilledTimesteps } from './timesteps';

/** What the samplers of distilled models have in common: few steps, at timesteps that the model was distilled for. */
export abstract class DistilledScheduler extends BaseScheduler {
  protected readonly alphas: Float32Array;

  constructor(config: SchedulerConfig) {
    super(config);
    this.alphas = alphasCumprod(config);
  }

  protected override maxSteps(): number {
    return this.config.originalInferenceSteps;
  }

  protected start(steps: number): Float64Array {
    return distilledTimesteps(this.config, steps);
  }
}
