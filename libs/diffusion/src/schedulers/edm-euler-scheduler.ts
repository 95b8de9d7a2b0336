import { weightedSum } from './prediction';
import { DiscreteScheduler } from './discrete-scheduler';
import type { NoiseLevel } from './scheduler';
import { type SchedulerConfig, SchedulerError, type SchedulerParameters } from './scheduler-config';
import { karrasSigmas } from './sigmas';
import { linspace } from './timesteps';

/**
 * Euler's method for denoisers that were trained with EDM's preconditioning: they are told a quarter of the noise
 * level's logarithm in place of a timestep.
 * Source: Karras et al., "Elucidating the Design Space of Diffusion-Based Generative Models" (2022), algorithm 1
 * without correction and table 1; diffusers' EDMEulerScheduler.
 */
export class EdmEulerScheduler extends DiscreteScheduler {
  static readonly parameters: SchedulerParameters = {
    sigma_min: 0.002,
    sigma_max: 80,
    sigma_data: 0.5,
    sigma_schedule: 'karras',
    rho: 7,
    final_sigmas_type: 'zero',
  };

  private readonly sigmaMin: number;
  private readonly sigmaMax: number;
  private sigmas: Float32Array = new Float32Array(0);

  constructor(config: SchedulerConfig) {
    super(config);
    if (config.predictionType === 'sample')
      throw new SchedulerError('EDMEulerScheduler cannot work with the prediction_type "sample".');
    const { sigmaMin = 0.002, sigmaMax = 80 } = config;
    this.sigmaMin = sigmaMin;
    this.sigmaMax = sigmaMax;
    this.initNoiseSigma = Math.sqrt(sigmaMax ** 2 + 1);
  }

  /** c_in of table 1. */
  override scaleModelInput(sample: Float32Array): Float32Array {
    return weightedSum([1 / Math.sqrt(this.sigmas[this.stepIndex] ** 2 + this.config.sigmaData ** 2)], [sample]);
  }

  protected start(steps: number): Float64Array {
    const { sigmaMin, sigmaMax } = this;
    const { rho, finalSigmasType, sigmaSchedule } = this.config;
    const spaced =
      sigmaSchedule === 'karras'
        ? karrasSigmas(sigmaMax, sigmaMin, steps, rho)
        : // torch counts from the lowest, so that a single step would begin there.
          linspace(Math.log(sigmaMin), Math.log(sigmaMax), steps).map(Math.exp).reverse();
    this.sigmas = Float32Array.of(...spaced, finalSigmasType === 'sigma_min' ? spaced[steps - 1] : 0);
    return Float64Array.from({ length: steps }, (_, i) => Math.fround(0.25 * Math.fround(Math.log(this.sigmas[i]))));
  }

  protected override nextLevel(): NoiseLevel {
    return { alpha: 1, sigma: this.sigmas[this.stepIndex] };
  }

  protected advance(modelOutput: Float32Array, sample: Float32Array): Float32Array {
    const { sigmaData, predictionType } = this.config;
    const sigma = this.sigmas[this.stepIndex];
    const total = sigma ** 2 + sigmaData ** 2;

    // 1. The picture: c_skip * sample + c_out * output.
    const out = ((predictionType === 'v_prediction' ? -1 : 1) * sigma * sigmaData) / Math.sqrt(total);
    const picture = weightedSum([sigmaData ** 2 / total, out], [sample, modelOutput]);

    // 2. A straight line to the next noise level.
    const slope = weightedSum([1 / sigma, -1 / sigma], [sample, picture]);
    return weightedSum([1, Math.fround(this.sigmas[this.stepIndex + 1] - sigma)], [sample, slope]);
  }
}
