import type { Generator } from '../random/generator';
import { picture } from './prediction';
import { DiscreteScheduler } from './discrete-scheduler';
import { addNoise } from './scheduler';
import {
  dynamicThresholding,
  type SchedulerConfig,
  SchedulerError,
  type SchedulerParameters,
} from './scheduler-config';
import { integerTimesteps } from './timesteps';

/**
 * Denoising diffusion probabilistic models.
 * Source: Ho et al., "Denoising Diffusion Probabilistic Models" (2020), equation 7; diffusers' DDPMScheduler.
 */
export class DdpmScheduler extends DiscreteScheduler {
  static readonly parameters: SchedulerParameters = {
    variance_type: 'fixed_small',
    clip_sample: true,
    clip_sample_range: 1,
    ...dynamicThresholding,
    timestep_spacing: 'leading',
    rescale_betas_zero_snr: false,
  };

  constructor(config: SchedulerConfig) {
    super(config);
    if (!['fixed_small', 'fixed_small_log', 'fixed_large'].includes(config.varianceType))
      throw new SchedulerError(`variance_type "${config.varianceType}" is not supported.`);
  }

  protected start(steps: number): Float64Array {
    return integerTimesteps(this.config, steps);
  }

  protected advance(modelOutput: Float32Array, sample: Float32Array, generator: () => Generator): Float32Array {
    // 1. The shares of signal at this timestep and at the next one of the run, and the loss between them.
    const timestep = this.timesteps[this.stepIndex];
    const share = this.alphas[timestep];
    const last = this.stepIndex === this.timesteps.length - 1;
    const shareBefore = last ? 1 : this.alphas[this.timesteps[this.stepIndex + 1]];
    const beta = 1 - share / shareBefore;

    // 2. The mean of the posterior: a blend of the predicted picture and the sample.
    const data = picture(this.config, this.levelAt(timestep), modelOutput, sample);
    const dataWeight = (Math.sqrt(shareBefore) * beta) / (1 - share);
    const sampleWeight = (Math.sqrt(1 - beta) * (1 - shareBefore)) / (1 - share);
    const previous = data.map((value, i) => dataWeight * value + sampleWeight * sample[i]);

    // 3. Noise of the posterior's variance, or of the larger beta; none at the first training timestep.
    if (timestep > 0) {
      const small = Math.max(((1 - shareBefore) / (1 - share)) * beta, 1e-20);
      const variance = this.config.varianceType === 'fixed_large' ? beta : small;
      addNoise(previous, Math.sqrt(variance), generator());
    }
    return previous;
  }
}
