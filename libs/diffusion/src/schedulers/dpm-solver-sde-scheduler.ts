import { BrownianInterval } from '../random';
import { BaseScheduler } from './base-scheduler';
import { alphasCumprod, noiseLevels } from './noise-schedule';
import { derivative, predictedData, weightedSum } from './prediction';
import type { StepOptions } from './scheduler';
import { SchedulerError } from './scheduler';
import type { SchedulerConfig, SchedulerParameters } from './scheduler-config';
import { doubleSigmaSchedule, initialNoiseSigma, scaleToUnitVariance, timestepFinder } from './sigmas';

const { fround } = Math;

/** The time of k-diffusion, minus the logarithm of the noise level, and back, in float32. */
const timeOf = (sigma: number) => fround(-fround(Math.log(sigma)));
const sigmaOf = (time: number) => fround(Math.exp(-time));

/**
 * DPM-Solver++ of second order as a stochastic differential equation, singlestep. All steps but the last take two U-Net evaluations,
 * so a run of n steps has 2n - 1 timesteps. The noise is a Brownian motion over the noise level, so that it does not depend on the
 * number of steps. Its seed is the configuration's `noise_sampler_seed`; diffusers draws one at random where there is none, we take
 * the picture's.
 * Source: Katherine Crowson's k-diffusion, sample_dpmpp_sde; diffusers' DPMSolverSDEScheduler.
 */
export class DpmSolverSdeScheduler extends BaseScheduler {
  static readonly parameters: SchedulerParameters = {
    beta_start: 0.00085,
    beta_end: 0.012,
    use_karras_sigmas: false,
    use_exponential_sigmas: false,
    use_beta_sigmas: false,
    noise_sampler_seed: null,
  };

  override readonly order = 2;
  override readonly usesNoise = true;
  private readonly alphas: Float32Array;
  private sigmas: Float32Array = new Float32Array(0);
  private motion: BrownianInterval | undefined;
  /** The sample at the start of the step whose second evaluation is next. */
  private origin: Float32Array | undefined;

  constructor(config: SchedulerConfig) {
    super(config);
    if (config.predictionType === 'sample')
      throw new SchedulerError('DPMSolverSDEScheduler cannot work with the prediction_type "sample".');
    this.alphas = alphasCumprod(config);
  }

  override scaleModelInput(sample: Float32Array): Float32Array {
    return scaleToUnitVariance(sample, this.origin ? sigmaOf(this.times().middle) : this.sigmas[this.stepIndex >> 1]);
  }

  protected start(steps: number): Float64Array {
    const levels = noiseLevels(this.alphas);
    const { sigmas, timesteps } = doubleSigmaSchedule(this.config, levels, steps, (timestep) => timestep);
    this.sigmas = Float32Array.of(...sigmas, 0);
    this.initNoiseSigma = initialNoiseSigma(this.config, this.sigmas);
    this.motion = undefined;
    this.origin = undefined;
    const timestepOf = timestepFinder(levels);
    const middle = (i: number) => Math.exp((Math.log(sigmas[i]) + Math.log(sigmas[i + 1])) / 2);
    return Float64Array.from({ length: 2 * steps - 1 }, (_, call) =>
      call % 2 === 0 ? timesteps[call / 2] : timestepOf(middle((call - 1) / 2)),
    );
  }

  protected advance(modelOutput: Float32Array, sample: Float32Array, options: StepOptions): Float32Array {
    const { predictionType } = this.config;
    const index = this.stepIndex >> 1;
    const sigma = this.sigmas[index];

    // 1. The last step is a straight line to the picture.
    if (this.sigmas[index + 1] === 0) {
      const slope = derivative(predictionType, sigma, modelOutput, sample);
      return weightedSum([1, -sigma], [sample, slope]);
    }

    // 2. The picture that the model predicts, at the start of the step or in its middle.
    const { time, middle, next } = this.times();
    const seen = this.origin ? sigmaOf(middle) : sigma;
    const alpha = 1 / Math.sqrt(seen ** 2 + 1);
    const data = predictedData(predictionType, alpha, seen * alpha);
    const picture = weightedSum([data.sample * data.scale * alpha, data.output * data.scale], [sample, modelOutput]);

    // 3. From the start to the middle, and the second time to the end: down to a lower level, and up again by noise.
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
  private times(): { time: number; middle: number; next: number } {
    const index = this.stepIndex >> 1;
    const time = timeOf(this.sigmas[index]);
    const next = timeOf(this.sigmas[index + 1]);
    return { time, next, middle: fround(time + fround(fround(next - time) / 2)) };
  }

  /** The increment of the Brownian motion from noise level `to` up to `from`, backwards and of unit variance. */
  private brownianNoise({ generator }: StepOptions, from: number, to: number, size: number): Float32Array {
    const { noiseSamplerSeed } = this.config;
    if (!generator) throw new SchedulerError(`${this.constructor.name} adds noise and needs a generator.`);
    const positive = this.sigmas.filter((sigma) => sigma > 0);
    this.motion ??= new BrownianInterval(
      noiseSamplerSeed ?? generator.seed,
      positive.reduce((a, b) => Math.min(a, b)),
      positive.reduce((a, b) => Math.max(a, b)),
      size,
    );
    const scale = fround(Math.sqrt(Math.abs(fround(to - from))));
    return this.motion.between(to, from).map((value) => -value / scale);
  }
}
