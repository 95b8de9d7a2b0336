import { DistilledScheduler } from './distilled-scheduler';
import { picture } from './prediction';
import type { StepOptions } from './scheduler';
import { dynamicThresholding } from './scheduler-config';
import type { SchedulerParameters } from './scheduler-config';

/** The standard deviation of the data that the boundary condition assumes, as in the paper. */
const sigmaData = 0.5;

/**
 * Sampling of latent consistency models: each step guesses the whole picture, then adds noise again
 * up to the next timestep.
 * Source: Luo et al., "Latent Consistency Models" (2023), algorithm 3 and appendix; diffusers' LCMScheduler.
 */
export class LcmScheduler extends DistilledScheduler {
  static readonly parameters: SchedulerParameters = {
    beta_start: 0.00085,
    beta_end: 0.012,
    beta_schedule: 'scaled_linear',
    original_inference_steps: 50,
    clip_sample: false,
    clip_sample_range: 1,
    set_alpha_to_one: true,
    ...dynamicThresholding,
    timestep_spacing: 'leading',
    timestep_scaling: 10,
    rescale_betas_zero_snr: false,
  };

  override readonly usesNoise = true;

  protected advance(modelOutput: Float32Array, sample: Float32Array, options: StepOptions): Float32Array {
    const { timestepScaling } = this.config;

    // 1. The picture that the model predicts.
    const timestep = this.timesteps[this.stepIndex];
    const alpha = this.alphas[timestep];
    const data = picture(this.config, { alpha: Math.sqrt(alpha), sigma: Math.sqrt(1 - alpha) }, modelOutput, sample);

    // 2. The boundary condition: at timestep 0 the picture is the sample itself.
    const scaled = timestep * timestepScaling;
    const skip = sigmaData ** 2 / (scaled ** 2 + sigmaData ** 2);
    const out = scaled / Math.sqrt(scaled ** 2 + sigmaData ** 2);
    const previous = new Float32Array(sample.length);
    for (let i = 0; i < previous.length; i++) previous[i] = out * data[i] + skip * sample[i];

    // 3. Add noise again, up to the next timestep; the last picture is the result.
    if (this.stepIndex < this.timesteps.length - 1) {
      const next = this.alphas[this.timesteps[this.stepIndex + 1]];
      const fresh = this.noise(options, sample.length);
      const dataWeight = Math.sqrt(next);
      const noiseWeight = Math.sqrt(1 - next);
      for (let i = 0; i < previous.length; i++) previous[i] = dataWeight * previous[i] + noiseWeight * fresh[i];
    }
    return previous;
  }
}
