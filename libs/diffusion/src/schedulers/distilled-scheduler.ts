import { DiscreteScheduler } from './discrete-scheduler';
import type { SchedulerParameters } from './scheduler-config';

/** Parameters that every class for distilled models has. */
export const distilledParameters: SchedulerParameters = {
  beta_start: 0.00085,
  beta_end: 0.012,
  beta_schedule: 'scaled_linear',
  original_inference_steps: 50,
  rescale_betas_zero_snr: false,
};

/** A scheduler of distilled models: few steps, evenly chosen from the timesteps that the model was distilled on. */
export abstract class DistilledScheduler extends DiscreteScheduler {
  protected override maxSteps(): number {
    return this.config.originalInferenceSteps;
  }

  protected start(steps: number): Float64Array {
    const { numTrainTimesteps, originalInferenceSteps: most } = this.config;
    const stride = Math.floor(numTrainTimesteps / most);
    return Float64Array.from({ length: steps }, (_, i) => (most - Math.floor(i * (most / steps))) * stride - 1);
  }
}
