import { BaseScheduler } from './base-scheduler';
import { alphasCumprod } from './noise-schedule';
import { picture } from './prediction';
import type { StepOptions } from './scheduler';
import { SchedulerError } from './scheduler';
import { dynamicThresholding } from './scheduler-config';
import type { SchedulerConfig, SchedulerParameters } from './scheduler-config';
import { integerTimesteps } from './timesteps';

/**
 * Denoising diffusion probabilistic models.
 * Source: Ho et al., "Denoising Diffusion Probabilistic Models" (2020), equation 7; diffusers' DDPMScheduler.
 */
export class DdpmScheduler extends BaseScheduler {
  static readonly parameters: SchedulerParameters = {
    variance_type: 'fixed_small',
    clip_sample: true,
    clip_sample_range: 1,
    ...dynamicThresholding,
    timestep_spacing: 'leading',
    rescale_betas_zero_snr: false,
  };

  override readonly usesNoise = true;
  private readonly alphas: Float32Array;

  constructor(config: SchedulerConfig) {
    super(config);
    if (!['fixed_small', 'fixed_small_log', 'fixed_large'].includes(config.varianceType))
      throw new SchedulerError(`variance_type "${config.varianceType}" is not supported.`);
    this.alphas = alphasCumprod(config);
  }

  protected start(steps: number): Float64Array {
    return integerTimesteps(this.config, steps);
  }

  protected advance(modelOutput: Float32Array, sample: Float32Array, options: StepOptions): Float32Array {
    const { varianceType } = this.config;

    // 1. The shares of signal at this timestep and at the next one of the run, and the loss between them.
    const timestep = this.timesteps[this.stepIndex];
    const alpha = this.alphas[timestep];
    const last = this.stepIndex === this.timesteps.length - 1;
    const alphaBefore = last ? 1 : this.alphas[this.timesteps[this.stepIndex + 1]];
    const beta = 1 - alpha / alphaBefore;

    // 2. The mean of the posterior: a blend of the predicted picture and the sample.
    const data = picture(this.config, { alpha: Math.sqrt(alpha), sigma: Math.sqrt(1 - alpha) }, modelOutput, sample);
    const dataWeight = (Math.sqrt(alphaBefore) * beta) / (1 - alpha);
    const sampleWeight = (Math.sqrt(1 - beta) * (1 - alphaBefore)) / (1 - alpha);
    const previous = new Float32Array(sample.length);
    for (let i = 0; i < previous.length; i++) previous[i] = dataWeight * data[i] + sampleWeight * sample[i];

    // 3. Noise of the posterior's variance, or of the larger beta; none at the first training timestep.
    if (timestep > 0) {
      const small = Math.max(((1 - alphaBefore) / (1 - alpha)) * beta, 1e-20);
      const deviation = Math.sqrt(varianceType === 'fixed_large' ? beta : small);
      const fresh = this.noise(options, sample.length);
      for (let i = 0; i < previous.length; i++) previous[i] += deviation * fresh[i];
    }
    return previous;
  }
}
