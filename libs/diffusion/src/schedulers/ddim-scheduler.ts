import { picture, predictedNoise } from './prediction';
import { DiscreteScheduler } from './discrete-scheduler';
import { dynamicThresholding, type SchedulerParameters } from './scheduler-config';
import { integerTimesteps } from './timesteps';

/**
 * Denoising diffusion implicit models, without the fresh noise that the paper's eta adds.
 * Source: Song et al., "Denoising Diffusion Implicit Models" (2021), equation 12; diffusers' DDIMScheduler.
 */
export class DdimScheduler extends DiscreteScheduler {
  static readonly parameters: SchedulerParameters = {
    clip_sample: true,
    clip_sample_range: 1,
    set_alpha_to_one: true,
    ...dynamicThresholding,
    timestep_spacing: 'leading',
    rescale_betas_zero_snr: false,
  };

  private stride = 0;

  protected start(steps: number): Float64Array {
    this.stride = Math.floor(this.config.numTrainTimesteps / steps);
    return integerTimesteps(this.config, steps);
  }

  protected advance(modelOutput: Float32Array, sample: Float32Array): Float32Array {
    // 1. Signal and noise at this timestep, and the share of signal at the previous one.
    const timestep = this.timesteps[this.stepIndex];
    const level = this.levelAt(timestep);
    const before = timestep - this.stride;
    const shareBefore = before >= 0 ? this.alphas[before] : this.config.setAlphaToOne ? 1 : this.alphas[0];

    // 2. The picture and the noise according to the model's output (the picture is "predicted x0" in the paper).
    const data = picture(this.config, level, modelOutput, sample);
    const noise = predictedNoise(this.config.predictionType, level.alpha, level.sigma);

    // 3. The previous sample.
    const [dataWeight, noiseWeight] = [Math.sqrt(shareBefore), Math.sqrt(1 - shareBefore)];
    return data.map((value, i) => {
      // A sample that is infinite, as with zero terminal SNR, must not reach the noise that was predicted as such.
      const ofSample = noise.sample === 0 ? 0 : noise.sample * sample[i];
      const epsilon = (ofSample + noise.output * modelOutput[i]) * noise.scale;
      return dataWeight * value + noiseWeight * epsilon;
    });
  }
}
