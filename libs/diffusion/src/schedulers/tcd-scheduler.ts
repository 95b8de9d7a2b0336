import { DistilledScheduler, distilledParameters } from './distilled-scheduler';
import { predictedData, predictedNoise, weightedSum } from './prediction';

/**
 * Sampling of models distilled by trajectory consistency: each step jumps to the next timestep of the same trajectory.
 * diffusers' pipelines draw without the noise of the paper's gamma (eta), and so do we.
 * Source: Zheng et al., "Trajectory Consistency Distillation" (2024), algorithm 4; diffusers' TCDScheduler.
 */
export class TcdScheduler extends DistilledScheduler {
  static readonly parameters = distilledParameters;

  protected advance(modelOutput: Float32Array, sample: Float32Array): Float32Array {
    // 1. Signal and noise here and at the next timestep.
    const last = this.stepIndex === this.timesteps.length - 1;
    const { alpha, sigma } = this.levelAt(this.timesteps[this.stepIndex]);
    const next = this.levelAt(last ? 0 : this.timesteps[this.stepIndex + 1]);

    // 2. The sample there, from the picture and the noise according to the model's output.
    const data = predictedData(this.config.predictionType, alpha, sigma);
    const noise = predictedNoise(this.config.predictionType, alpha, sigma);
    return weightedSum(
      [
        next.alpha * data.sample * data.scale + next.sigma * noise.sample * noise.scale,
        next.alpha * data.output * data.scale + next.sigma * noise.output * noise.scale,
      ],
      [sample, modelOutput],
    );
  }
}
