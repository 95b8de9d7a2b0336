import type { Generator } from '../random';

/** What a step may need besides the sample. */
export interface StepOptions {
  /** Where noise comes from; needed by the schedulers that add noise (see `usesNoise`). */
  generator?: Generator;
  /** DDIM only: 0 adds no noise (the default), 1 as much as DDPM. */
  eta?: number;
}

/**
 * One image's way from noise to picture, in diffusers' terms. A batch of n images has n schedulers, each with its own
 * history and generator, so a picture does not depend on its neighbours. Samples are flat arrays of any one length.
 */
export interface Scheduler {
  /** What the U-Net is fed, one entry per `step` call; some schedulers call the U-Net more often than there are steps. */
  readonly timesteps: Float64Array;
  /** The first sample is standard normal noise times this. */
  readonly initNoiseSigma: number;
  /** U-Net evaluations per step: 2 for Heun, else 1. */
  readonly order: number;
  /** True when `step` draws noise with the default options, so that it needs a generator. */
  readonly usesNoise: boolean;
  /** Starts anew with this many steps. Throws {@link SchedulerError} for a number the scheduler cannot do. */
  setTimesteps(numInferenceSteps: number): void;
  /** What the U-Net is to see of `sample` at the current step; may be `sample` itself. */
  scaleModelInput(sample: Float32Array, timestep: number): Float32Array;
  /**
   * The previous (less noisy) sample, a new array. `timestep` must be the next one of `timesteps`. `modelOutput` may be
   * reused after the call; `sample` may be kept, so do not write into it.
   */
  step(modelOutput: Float32Array, timestep: number, sample: Float32Array, options?: StepOptions): Float32Array;
}

/** A scheduler that does not exist, or a value it does not accept; the message is one plain sentence. */
export class SchedulerError extends Error {
  override name = 'SchedulerError';
}
