import { BrownianInterval } from '../random';
import { noiseLevels } from './noise-schedule';
import { derivative, predictedData, weightedSum } from './prediction';
import type { StepOptions } from './scheduler';
import { SchedulerError } from './scheduler';
import type { SchedulerConfig, SchedulerParameters } from './scheduler-config';
import type { SigmaSchedule } from './sigmas';
import { doubleSigmaSchedule, timestepFinder } from './sigmas';
import { timestepsOfCalls, TwoCallScheduler } from './two-call-scheduler';

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
  static readonly parameters: SchedulerParameters = {
    beta_start: 0.00085,
    beta_end: 0.012,
    use_karras_sigmas: false,
    use_exponential_sigmas: false,
    use_beta_sigmas: false,
    noise_sampler_seed: null,
  };

  override readonly usesNoise = true;
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
    const levels = noiseLevels(this.alphas);
    const { sigmas, timesteps } = doubleSigmaSchedule(this.config, levels, steps, (timestep) => timestep);
    const timestepOf = timestepFinder(levels);
    const middle = (step: number) => Math.exp((Math.log(sigmas[step]) + Math.log(sigmas[step + 1])) / 2);
    return {
      sigmas: Float32Array.of(...sigmas, 0),
      timesteps: timestepsOfCalls(timesteps, (step) => timestepOf(middle(step))),
    };
  }

  protected secondSigma(step: number): number {
    return sigmaOf(this.times(step).middle);
  }

  protected advance(modelOutput: Float32Array, sample: Float32Array, options: StepOptions): Float32Array {
    const { predictionType } = this.config;
    const step = this.currentStep();
    const sigma = this.currentSigma();

    // 1. The last step is a straight line to the picture.
    if (this.sigmas[step + 1] === 0) {
      const slope = derivative(predictionType, sigma, modelOutput, sample);
      return weightedSum([1, -sigma], [sample, slope]);
    }

    // 2. The picture that the model predicts, at the start of the step or in its middle.
    const alpha = 1 / Math.sqrt(sigma ** 2 + 1);
    const data = predictedData(predictionType, alpha, sigma * alpha);
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
      [start, picture, this.brownianNoise(options, from, to, sample.length)],
    );
  }

  /** Time at the start of the step, half way, and at its end. */
  private times(step: number): { time: number; middle: number; next: number } {
    const time = timeOf(this.sigmas[step]);
    const next = timeOf(this.sigmas[step + 1]);
    return { time, next, middle: fround(time + fround(fround(next - time) / 2)) };
  }

  /** The increment of the Brownian motion from noise level `to` up to `from`, backwards and of unit variance. */
  private brownianNoise(options: StepOptions, from: number, to: number, size: number): Float32Array {
    const { seed } = this.generatorOf(options);
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
