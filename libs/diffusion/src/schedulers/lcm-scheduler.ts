import type { Generator } from '../random/generator';
import { DistilledScheduler, distilledParameters } from './distilled-scheduler';
import { picture } from './prediction';
import { dynamicThresholding, type SchedulerParameters } from './scheduler-config';

/** The standard deviation of the data that the boundary condition assumes, as in the paper. */
const sigmaData = 0.5;

/**
 * Sampling of latent consistency models: each step guesses the whole picture, then adds noise again up to the next
 * timestep.
 * Source: Luo et al., "Latent Consistency Models" (2023), algorithm 3 and appendix; diffusers' LCMScheduler.
 */
export class LcmScheduler extends DistilledScheduler {
  static readonly parameters: SchedulerParameters = {
    ...distilledParameters,
    clip_sample: false,
    clip_sample_range: 1,
    set_alpha_to_one: true,
    ...dynamicThresholding,
    timestep_spacing: 'leading',
    timestep_scaling: 10,
  };

  protected advance(modelOutput: Float32Array, sample: Float32Array, generator: () => Generator): Float32Array {
    // 1. The picture that the model predicts.
    const timestep = this.timesteps[this.stepIndex];
    const data = picture(this.config, this.levelAt(timestep), modelOutput, sample);

    // 2. The boundary condition: at timestep 0 the picture is the sample itself.
    const scaled = timestep * this.config.timestepScaling;
    const skip = sigmaData ** 2 / (scaled ** 2 + sigmaData ** 2);
    const out = scaled / Math.sqrt(scaled ** 2 + sigmaData ** 2);
    const previous = data.map((value, i) => out * value + skip * sample[i]);
    if (this.stepIndex === this.timesteps.length - 1) return previous;

    // 3. Add noise again, up to the next timestep; the last picture is the result.
    const next = this.levelAt(this.timesteps[this.stepIndex + 1]);
    const fresh = generator().randn(sample.length);
    return previous.map((value, i) => next.alpha * value + next.sigma * fresh[i]);
  }
}
