import type { Generator } from '../random';

/** Optional inputs of a step. */
export interface StepOptions {
  /** The source of noise, for schedulers that add noise (see `usesNoise`). */
  generator?: Generator;
  /** DDIM only: 0 adds no noise (the default), 1 as much as DDPM. */
  eta?: number;
}

/**
 * The denoising of one image, in diffusers' terms. A batch of n images has n schedulers, each with its own history and
 * generator, so a picture does not depend on its neighbours. Samples are flat arrays of any fixed length.
 */
export interface Scheduler {
  /** The U-Net's timesteps, one per call of `step`; some schedulers have more of them than steps. */
  readonly timesteps: Float64Array;
  /** Factor of the first sample, which is standard normal noise. */
  readonly initNoiseSigma: number;
  /** U-Net evaluations per step: 2 for Heun, else 1. */
  readonly order: number;
  /** Whether `step` draws noise with the default options, so that it needs a generator. */
  readonly usesNoise: boolean;
  /** Starts a run with this many steps. @throws SchedulerError for a number the scheduler does not support. */
  setTimesteps(numInferenceSteps: number): void;
  /** The U-Net's input for `sample` at the current step; may be `sample` itself. */
  scaleModelInput(sample: Float32Array, timestep: number): Float32Array;
  /**
   * The previous (less noisy) sample, a new array. `timestep` must be the next one of `timesteps`. The caller may reuse
   * `modelOutput` after the call, but must not write into `sample`, which may be kept.
   */
  step(modelOutput: Float32Array, timestep: number, sample: Float32Array, options?: StepOptions): Float32Array;
}

/** An unknown scheduler, or a value that it does not accept; the message is one plain sentence. */
export class SchedulerError extends Error {
  override name = 'SchedulerError';
}
