import type { Generator } from '../random/generator';
import { weightedSum } from './prediction';
import { SchedulerError } from './scheduler-config';

/** Signal and noise of a sample: sample = alpha * x0 + sigma * noise. */
export interface NoiseLevel {
  alpha: number;
  sigma: number;
}

/** Of what a dynamic shift of the noise levels depends on beside the number of steps. */
export interface RunSize {
  /** Positions of the latents that the denoiser attends to. */
  tokens: number;
  /** The shift's mu by a rule of the model's family; without one the scheduler's configuration has it. */
  muOf?: (tokens: number, steps: number) => number;
}

/**
 * The denoising of one image, in diffusers' terms. A batch of n images has n schedulers, each with its own history and
 * generator, so a picture does not depend on its neighbours. Samples are flat arrays of any fixed length.
 */
export abstract class Scheduler {
  /** What the denoiser is told of the noise, one per call of `step`; some schedulers have more of them than steps. */
  timesteps: Float64Array = new Float64Array(0);
  /** Factor of the first sample, which is standard normal noise. */
  initNoiseSigma = 1;
  /** Calls of the denoiser that a step takes; the last step may take one less. */
  readonly order: number = 1;
  protected stepIndex = 0;
  protected beginIndex = 0;

  /**
   * Starts a run with this many steps.
   * @param size needed where the configuration has `use_dynamic_shifting`
   * @throws SchedulerError for a number the scheduler does not support
   */
  setTimesteps(numInferenceSteps: number, size?: RunSize): void {
    const most = this.maxSteps();
    if (!Number.isInteger(numInferenceSteps) || numInferenceSteps < 1 || numInferenceSteps > most)
      throw new SchedulerError(
        `The number of steps must be an integer from 1 to ${most}, but is ${numInferenceSteps}.`,
      );
    this.stepIndex = this.beginIndex = 0;
    this.timesteps = this.start(numInferenceSteps, size);
  }

  /** Leaves out the first steps of a run that has just been started: a picture is there to begin with. */
  beginAt(step: number): void {
    this.stepIndex = this.beginIndex = step * this.order;
  }

  /** The index of the timestep with which the run begins. */
  get firstCall(): number {
    return this.beginIndex;
  }

  /** A sample with as much noise as the denoiser expects at the next call; a new array. */
  addNoise(sample: Float32Array, noise: Float32Array): Float32Array {
    const { alpha, sigma } = this.nextLevel();
    return weightedSum([alpha, sigma], [sample, noise]);
  }

  /** The denoiser's input for `sample` at the current step; may be `sample` itself. */
  scaleModelInput(sample: Float32Array, _timestep: number): Float32Array {
    return sample;
  }

  /** The picture (x0) that a prediction means. @param seen what `scaleModelInput` gave for it */
  abstract expectedPicture(modelOutput: Float32Array, timestep: number, seen: Float32Array): Float32Array;

  /**
   * The previous (less noisy) sample, a new array. `timestep` must be the next one of `timesteps`. The caller may reuse
   * `modelOutput` after the call, but must not write into `sample`, which may be kept.
   * @param generator the source of noise, for schedulers that add some
   */
  step(modelOutput: Float32Array, timestep: number, sample: Float32Array, generator?: Generator): Float32Array {
    if (this.stepIndex >= this.timesteps.length)
      throw new SchedulerError(`The run has ${this.timesteps.length} steps; no further one can be made.`);
    if (timestep !== this.timesteps[this.stepIndex])
      throw new SchedulerError(`The next timestep is ${this.timesteps[this.stepIndex]}, not ${timestep}.`);
    if (modelOutput.length !== sample.length)
      throw new SchedulerError(`The model gave ${modelOutput.length} values for a sample of ${sample.length}.`);
    const previous = this.advance(modelOutput, sample, () => {
      if (generator) return generator;
      throw new SchedulerError(`${this.constructor.name} adds noise and needs a generator.`);
    });
    this.stepIndex++;
    return previous;
  }

  /** Clears the previous run and returns the timesteps of the new one. */
  protected abstract start(steps: number, size?: RunSize): Float64Array;

  /** The sample after the one at `stepIndex`. @param generator called only if noise is added */
  protected abstract advance(modelOutput: Float32Array, sample: Float32Array, generator: () => Generator): Float32Array;

  protected abstract maxSteps(): number;

  /** The level of the sample that the next call is for. */
  protected abstract nextLevel(): NoiseLevel;
}

/** Adds fresh noise of this standard deviation to a sample, in place. */
export function addNoise(sample: Float32Array, deviation: number, generator: Generator): void {
  const fresh = generator.randn(sample.length);
  for (let i = 0; i < sample.length; i++) sample[i] += deviation * fresh[i];
}
