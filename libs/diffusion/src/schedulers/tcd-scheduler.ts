import { DistilledScheduler } from './distilled-scheduler';
import { predictedData, predictedNoise, weightedSum } from './prediction';
import type { StepOptions } from './scheduler';
import { SchedulerError } from './scheduler';
import type { SchedulerParameters } from './scheduler-config';

/**
 * Sampling of models distilled by trajectory consistency: each step jumps to an earlier timestep of the same
 * trajectory, and with eta (gamma in the paper) beyond the next one, from where noise leads back to it. diffusers'
 * pipelines draw without eta.
 * Source: Zheng et al., "Trajectory Consistency Distillation" (2024), algorithm 4; diffusers' TCDScheduler.
 */
export class TcdScheduler extends DistilledScheduler {
  static readonly parameters: SchedulerParameters = {
    beta_start: 0.00085,
    beta_end: 0.012,
    beta_schedule: 'scaled_linear',
    original_inference_steps: 50,
    rescale_betas_zero_snr: false,
  };

  protected advance(modelOutput: Float32Array, sample: Float32Array, options: StepOptions): Float32Array {
    const { predictionType } = this.config;
    const { eta = 0 } = options;
    if (!(eta >= 0 && eta <= 1)) throw new SchedulerError(`eta must be from 0 to 1, but is ${eta}.`);

    // 1. The shares of signal here, at the next timestep, and at the one beyond it.
    const last = this.stepIndex === this.timesteps.length - 1;
    const next = last ? 0 : this.timesteps[this.stepIndex + 1];
    const alpha = this.alphas[this.timesteps[this.stepIndex]];
    const alphaNext = this.alphas[next];
    const alphaBeyond = this.alphas[Math.floor((1 - eta) * next)];

    // 2. The sample beyond, from the picture and the noise according to the model's output.
    const data = predictedData(predictionType, Math.sqrt(alpha), Math.sqrt(1 - alpha));
    const noise = predictedNoise(predictionType, Math.sqrt(alpha), Math.sqrt(1 - alpha));
    const [dataWeight, noiseWeight] = [Math.sqrt(alphaBeyond), Math.sqrt(1 - alphaBeyond)];
    const beyond = weightedSum(
      [
        dataWeight * data.sample * data.scale + noiseWeight * noise.sample * noise.scale,
        dataWeight * data.output * data.scale + noiseWeight * noise.output * noise.scale,
      ],
      [sample, modelOutput],
    );
    if (eta === 0 || last) return beyond;

    // 3. Noise back to the next timestep.
    const fresh = this.noise(options, sample.length);
    const share = alphaNext / alphaBeyond;
    return weightedSum([Math.sqrt(share), Math.sqrt(1 - share)], [beyond, fresh]);
  }
}
