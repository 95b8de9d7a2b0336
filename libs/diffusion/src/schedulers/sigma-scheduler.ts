import { BaseScheduler } from './base-scheduler';
import { finiteAlphasCumprod } from './noise-schedule';
import type { SchedulerConfig } from './scheduler-config';
import type { SigmaSchedule } from './sigmas';
import { initialNoiseSigma, scaleToUnitVariance, sigmaSchedule } from './sigmas';

/** A scheduler that goes from one noise level to the next and gives the U-Net a sample of unit variance. */
export abstract class SigmaScheduler extends BaseScheduler {
  /** The noise level at the start of each step of this run; the last one is that of the picture. */
  protected sigmas: Float32Array = new Float32Array(0);
  protected readonly alphas: Float32Array;

  constructor(config: SchedulerConfig) {
    super(config);
    this.alphas = finiteAlphasCumprod(config);
  }

  override scaleModelInput(sample: Float32Array): Float32Array {
    return scaleToUnitVariance(sample, this.currentSigma());
  }

  protected start(steps: number): Float64Array {
    const { sigmas, timesteps } = this.schedule(steps);
    this.sigmas = sigmas;
    this.initNoiseSigma = initialNoiseSigma(this.config, sigmas);
    return timesteps;
  }

  protected schedule(steps: number): SigmaSchedule {
    return sigmaSchedule(this.config, this.alphas, steps);
  }

  /** The noise level of the sample that the U-Net sees next. */
  protected currentSigma(): number {
    return this.sigmas[this.stepIndex];
  }
}
