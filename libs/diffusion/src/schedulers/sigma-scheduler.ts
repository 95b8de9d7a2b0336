import { BaseScheduler } from './base-scheduler';
import { finiteAlphasCumprod } from './noise-schedule';
import type { SchedulerConfig } from './scheduler-config';
import { initialNoiseSigma, scaleToUnitVariance, sigmaSchedule } from './sigmas';

/** A scheduler that goes from one noise level to the next, with one call of the U-Net a step, and gives the U-Net a sample of unit variance. */
export abstract class SigmaScheduler extends BaseScheduler {
  /** The noise levels of this run; the last one is that of the picture. */
  protected sigmas: Float32Array = new Float32Array(0);
  private readonly alphas: Float32Array;

  constructor(config: SchedulerConfig) {
    super(config);
    this.alphas = finiteAlphasCumprod(config);
  }

  override scaleModelInput(sample: Float32Array): Float32Array {
    return scaleToUnitVariance(sample, this.sigmas[this.stepIndex]);
  }

  protected start(steps: number): Float64Array {
    const { sigmas, timesteps } = sigmaSchedule(this.config, this.alphas, steps);
    this.sigmas = sigmas;
    this.initNoiseSigma = initialNoiseSigma(this.config, sigmas);
    return timesteps;
  }
}
