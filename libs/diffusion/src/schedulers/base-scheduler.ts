import type { Generator } from '../random';
import type { Scheduler, StepOptions } from './scheduler';
import { SchedulerError } from './scheduler';
import type { SchedulerConfig } from './scheduler-config';

/** What all schedulers share: the position in the run, and checks that each call is the expected one. */
export abstract class BaseScheduler implements Scheduler {
  timesteps: Float64Array = new Float64Array(0);
  initNoiseSigma = 1;
  readonly order: number = 1;
  readonly usesNoise: boolean = false;
  protected stepIndex = 0;

  constructor(protected readonly config: SchedulerConfig) {}

  setTimesteps(numInferenceSteps: number): void {
    const most = this.maxSteps();
    if (!Number.isInteger(numInferenceSteps) || numInferenceSteps < 1 || numInferenceSteps > most)
      throw new SchedulerError(
        `The number of steps must be an integer from 1 to ${most}, but is ${numInferenceSteps}.`,
      );
    this.stepIndex = 0;
    this.timesteps = this.start(numInferenceSteps);
  }

  scaleModelInput(sample: Float32Array, _timestep: number): Float32Array {
    return sample;
  }

  step(modelOutput: Float32Array, timestep: number, sample: Float32Array, options: StepOptions = {}): Float32Array {
    if (this.stepIndex >= this.timesteps.length)
      throw new SchedulerError(`The run has ${this.timesteps.length} steps; no further one can be made.`);
    if (timestep !== this.timesteps[this.stepIndex])
      throw new SchedulerError(`The next timestep is ${this.timesteps[this.stepIndex]}, not ${timestep}.`);
    if (modelOutput.length !== sample.length)
      throw new SchedulerError(`The model gave ${modelOutput.length} values for a sample of ${sample.length}.`);
    const previous = this.advance(modelOutput, sample, options);
    this.stepIndex++;
    return previous;
  }

  /** Clears the previous run and returns the timesteps of the new one. */
  protected abstract start(steps: number): Float64Array;

  /** The sample after the one at `stepIndex`. */
  protected abstract advance(modelOutput: Float32Array, sample: Float32Array, options: StepOptions): Float32Array;

  protected maxSteps(): number {
    return this.config.numTrainTimesteps;
  }

  protected noise(options: StepOptions, size: number): Float32Array {
    return this.generatorOf(options).randn(size);
  }

  protected generatorOf({ generator }: StepOptions): Generator {
    if (!generator) throw new SchedulerError(`${this.constructor.name} adds noise and needs a generator.`);
    return generator;
  }
}
