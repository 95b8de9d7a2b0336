import { SigmaScheduler } from './sigma-scheduler';

/**
 * A scheduler over noise levels whose steps take two calls of the U-Net each, except the last, which takes one: a run
 * of n steps has 2n - 1 timesteps. The second call is for a trial sample; the step then starts again from its origin.
 */
export abstract class TwoCallScheduler extends SigmaScheduler {
  override readonly order = 2;
  /** The sample at the start of the step whose second call is next; undefined if the first call of a step is next. */
  protected origin: Float32Array | undefined;

  protected override start(steps: number): Float64Array {
    this.origin = undefined;
    return super.start(steps);
  }

  /** The step that the next call belongs to, from 0. */
  protected currentStep(): number {
    return this.stepIndex >> 1;
  }

  protected override currentSigma(): number {
    const step = this.currentStep();
    return this.origin ? this.secondSigma(step) : this.sigmas[step];
  }

  /** The noise level of the second call of a step. */
  protected abstract secondSigma(step: number): number;
}

/**
 * The timesteps of all calls of a run.
 * @param first timestep of the first call of each step
 * @param second that of the second call
 */
export function timestepsOfCalls(first: Float64Array, second: (step: number) => number): Float64Array {
  return Float64Array.from({ length: 2 * first.length - 1 }, (_, call) =>
    call % 2 === 0 ? first[call / 2] : second((call - 1) / 2),
  );
}
