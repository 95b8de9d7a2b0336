import type { Generator } from '../random/generator';
import { derivative, weightedSum } from './prediction';
import { type SchedulerConfig, SchedulerError } from './scheduler-config';
import { type SigmaSchedule, timestepsOfCalls, twoCallParameters, TwoCallScheduler } from './sigma-scheduler';
import { spacedSigmas, timestepFinder } from './sigmas';
import { roundHalfEven } from './timesteps';

const { fround } = Math;

interface MidpointStep {
  from: number;
  /** Where the second call is, geometrically half way; 0 for the last step, which has none. */
  middle: number;
  to: number;
  /** Standard deviation of the noise that is added at the end. */
  up: number;
}

/**
 * The midpoint method over the noise level (DPM-Solver-2 of Karras et al.): a trial to the middle, then the whole step
 * with the derivative there.
 * Source: Karras et al., "Elucidating the Design Space of Diffusion-Based Generative Models" (2022), algorithm 2 with
 * the parameters of table 1; Katherine Crowson's k-diffusion, sample_dpm_2; diffusers' KDPM2DiscreteScheduler.
 */
export class Kdpm2DiscreteScheduler extends TwoCallScheduler {
  static readonly parameters = twoCallParameters;

  private steps: MidpointStep[] = [];

  constructor(config: SchedulerConfig) {
    super(config);
    if (config.predictionType === 'sample')
      throw new SchedulerError('KDPM2 schedulers cannot work with the prediction_type "sample".');
  }

  protected override schedule(steps: number): SigmaSchedule {
    const schedule = spacedSigmas(this.config, this.levels, steps, fround);
    const timesteps = this.config.useKarrasSigmas ? schedule.timesteps.map(roundHalfEven) : schedule.timesteps;
    const sigmas = Float32Array.of(...schedule.sigmas, 0);
    this.steps = Array.from(timesteps, (_, i) => this.midpointStep(sigmas[i], sigmas[i + 1]));
    const timestepOf = timestepFinder(this.levels, { float32: true });
    return { sigmas, timesteps: timestepsOfCalls(timesteps, (step) => timestepOf(this.secondSigma(step))) };
  }

  protected secondSigma(step: number): number {
    return this.steps[step].middle;
  }

  protected advance(modelOutput: Float32Array, sample: Float32Array, generator: () => Generator): Float32Array {
    const { from, middle, to, up } = this.steps[this.currentStep()];

    // 1. First call of a step: a straight line to its middle, and in the last step to its end.
    if (!this.origin) {
      const slope = derivative(this.config, from, modelOutput, sample);
      if (middle > 0) this.origin = sample;
      return weightedSum([1, fround(middle - from)], [sample, slope]);
    }

    // 2. Second call: the whole step from its start, with the derivative in the middle.
    const slope = derivative(this.config, middle, modelOutput, sample);
    const origin = this.origin;
    this.origin = undefined;
    const next = weightedSum([1, fround(to - from)], [origin, slope]);
    return up > 0 ? weightedSum([1, up], [next, generator().randn(next.length)]) : next;
  }

  protected midpointStep(from: number, next: number): MidpointStep {
    return { from, middle: geometricMean(from, next), to: next, up: 0 };
  }
}

/**
 * KDPM2 with fresh noise at the end of each step.
 * Source: Katherine Crowson's k-diffusion, sample_dpm_2_ancestral; diffusers' KDPM2AncestralDiscreteScheduler.
 */
export class Kdpm2AncestralDiscreteScheduler extends Kdpm2DiscreteScheduler {
  /**
   * Splits the next noise level into the target of the line and the added noise: next^2 = to^2 + up^2. The two squares
   * differ so little at the end of a run that rounding to float32 is visible there.
   */
  protected override midpointStep(from: number, next: number): MidpointStep {
    const [from2, next2] = [fround(from ** 2), fround(next ** 2)];
    const up = fround(Math.sqrt(fround(fround(next2 * fround(from2 - next2)) / from2)));
    const to = fround(Math.sqrt(Math.max(0, fround(next2 - fround(up ** 2)))));
    return { from, middle: geometricMean(from, to), to, up };
  }
}

function geometricMean(a: number, b: number): number {
  return b === 0 ? 0 : fround(Math.exp((Math.log(a) + Math.log(b)) / 2));
}
