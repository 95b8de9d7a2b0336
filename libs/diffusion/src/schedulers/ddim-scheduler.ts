import { BaseScheduler } from './base-scheduler';
import { alphasCumprod } from './noise-schedule';
import { picture, predictedNoise } from './prediction';
import type { StepOptions } from './scheduler';
import { dynamicThresholding } from './scheduler-config';
import type { SchedulerConfig, SchedulerParameters } from './scheduler-config';
import { integerTimesteps } from './timesteps';

/**
 * Denoising diffusion implicit models.
 * Source: Song et al., "Denoising Diffusion Implicit Models" (2021), equation 12; diffusers' DDIMScheduler.
 */
export class DdimScheduler extends BaseScheduler {
  static readonly parameters: SchedulerParameters = {
    clip_sample: true,
    clip_sample_range: 1,
    set_alpha_to_one: true,
    ...dynamicThresholding,
    timestep_spacing: 'leading',
    rescale_betas_zero_snr: false,
  };

  private readonly alphas: Float32Array;
  private stride = 0;

  constructor(config: SchedulerConfig) {
    super(config);
    this.alphas = alphasCumprod(config);
  }

  protected start(steps: number): Float64Array {
    this.stride = Math.floor(this.config.numTrainTimesteps / steps);
    return integerTimesteps(this.config, steps);
  }

  protected advance(modelOutput: Float32Array, sample: Float32Array, options: StepOptions): Float32Array {
    const { predictionType, setAlphaToOne } = this.config;
    const { eta = 0 } = options;

    // 1. The shares of signal at this timestep and at the previous one.
    const timestep = this.timesteps[this.stepIndex];
    const before = timestep - this.stride;
    const alpha = this.alphas[timestep];
    const alphaBefore = before >= 0 ? this.alphas[before] : setAlphaToOne ? 1 : this.alphas[0];

    // 2. The picture and the noise according to the model's output (the picture is "predicted x0" in the paper).
    const level = { alpha: Math.sqrt(alpha), sigma: Math.sqrt(1 - alpha) };
    const data = picture(this.config, level, modelOutput, sample);
    const noise = predictedNoise(predictionType, level.alpha, level.sigma);

    // 3. Fresh noise of variance eta^2 * sigma_t^2 (equation 16) replaces the same amount of predicted noise.
    const deviation = eta * Math.sqrt(((1 - alphaBefore) / (1 - alpha)) * (1 - alpha / alphaBefore));
    const dataWeight = Math.sqrt(alphaBefore);
    const noiseWeight = Math.sqrt(1 - alphaBefore - deviation ** 2);

    // 4. The previous sample.
    const previous = new Float32Array(sample.length);
    for (let i = 0; i < previous.length; i++) {
      const epsilon =
        predictionType === 'epsilon'
          ? modelOutput[i]
          : (noise.sample * sample[i] + noise.output * modelOutput[i]) * noise.scale;
      previous[i] = dataWeight * data[i] + noiseWeight * epsilon;
    }
    if (eta > 0) {
      const fresh = this.noise(options, sample.length);
      for (let i = 0; i < previous.length; i++) previous[i] += deviation * fresh[i];
    }
    return previous;
  }
}
