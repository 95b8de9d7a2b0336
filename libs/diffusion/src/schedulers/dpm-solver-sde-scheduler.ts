import { BrownianInterval } from '../random/brownian-interval';
import type { Generator } from '../random/generator';
import { derivative, predictedData, weightedSum } from './prediction';
import { type SchedulerConfig, SchedulerError, type SchedulerParameters } from './scheduler-config';
import { type SigmaSchedule, timestepsOfCalls, twoCallParameters, TwoCallScheduler } from './sigma-scheduler';
import { spacedSigmas, timestepFinder } from './sigmas';

const { fround } = Math;

/** The time of k-diffusion, minus the logarithm of the noise level, and back, in float32. */
const timeOf = (sigma: number) => fround(-fround(Math.log(sigma)));
const sigmaOf = (time: number) => fround(Math.exp(-time));

/**
 * DPM-Solver++ of second order as a stochastic differential equation, singlestep. The noise is a Brownian motion over
 * the noise level, so that it does not depend on the number of steps. Its seed is the configuration's
 * `noise_sampler_seed`; where there is none, diffusers draws one at random, and we take the picture's.
 * Source: Katherine Crowson's k-diffusion, sample_dpmpp_sde; diffusers' DPMSolverSDEScheduler.
 */
export class DpmSolverSdeScheduler extends TwoCallScheduler {
  static readonly parameters: SchedulerParameters = { ...twoCallParameters, noise_sampler_seed: null };

  private motion: BrownianInterval | undefined;

  constructor(config: SchedulerConfig) {
    super(config);
    if (config.predictionType === 'sample')
      throw new SchedulerError('DPMSolverSDEScheduler cannot work with the prediction_type "sample".');
  }

  protected override start(steps: number): Float64Array {
    this.motion = undefined;
    return super.start(steps);
  }

  protected override schedule(steps: number): SigmaSchedule {
    const { sigmas, timesteps } = spacedSigmas(this.config, this.levels, steps, (timestep) => timestep);
    const timestepOf = timestepFinder(this.levels);
    const middle = (step: number) => Math.exp((Math.log(sigmas[step]) + Math.log(sigmas[step + 1])) / 2);
    return {
      sigmas: Float32Array.of(...sigmas, 0),
      timesteps: timestepsOfCalls(timesteps, (step) => timestepOf(middle(step))),
    };
  }

  protected secondSigma(step: number): number {
    return sigmaOf(this.times(step).middle);
  }

  protected advance(modelOutput: Float32Array, sample: Float32Array, generator: () => Generator): Float32Array {
    const step = this.currentStep();
    const sigma = this.currentSigma();

    // 1. The last step is a straight line to the picture.
    if (this.sigmas[step + 1] === 0) {
      const slope = derivative(this.config, sigma, modelOutput, sample);
      return weightedSum([1, -sigma], [sample, slope]);
    }

    // 2. The picture that the model predicts, at the start of the step or in its middle.
    const alpha = 1 / Math.sqrt(sigma ** 2 + 1);
    const data = predictedData(this.config.predictionType, alpha, sigma * alpha);
    const picture = weightedSum([data.sample * data.scale * alpha, data.output * data.scale], [sample, modelOutput]);

    // 3. From the start to the middle, and the second time to the end: down to a lower level, and up again by noise.
    const { time, middle, next } = this.times(step);
    const [from, to] = [sigmaOf(time), sigmaOf(this.origin ? next : middle)];
    const up = fround(Math.min(to, Math.sqrt((to ** 2 * (from ** 2 - to ** 2)) / from ** 2)));
    const down = timeOf(fround(Math.sqrt(to ** 2 - up ** 2)));
    const start = this.origin ?? sample;
    this.origin = this.origin ? undefined : sample;
    return weightedSum(
      [fround(sigmaOf(down) / from), fround(-Math.expm1(fround(time - down))), up],
      [start, picture, this.brownianNoise(generator().seed, from, to, sample.length)],
    );
  }

  /** Time at the start of the step, half way, and at its end. */
  private times(step: number): { time: number; middle: number; next: number } {
    const time = timeOf(this.sigmas[step]);
    const next = timeOf(this.sigmas[step + 1]);
    return { time, next, middle: fround(time + fround(fround(next - time) / 2)) };
  }

  /** The increment of the Brownian motion from noise level `to` up to `from`, backwards and of unit variance. */
  private brownianNoise(seed: number, from: number, to: number, size: number): Float32Array {
    const positive = this.sigmas.filter((sigma) => sigma > 0);
    this.motion ??= new BrownianInterval(
      this.config.noiseSamplerSeed ?? seed,
      positive.reduce((a, b) => Math.min(a, b)),
      positive.reduce((a, b) => Math.max(a, b)),
      size,
    );
    const scale = fround(Math.sqrt(Math.abs(fround(to - from))));
    return this.motion.between(to, from).map((value) => -value / scale);
  }
}
