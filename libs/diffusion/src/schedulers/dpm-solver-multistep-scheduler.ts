import { BaseScheduler } from './base-scheduler';
import type { Level } from './lambdas';
import { levelOf, solverSchedule } from './lambdas';
import { finiteAlphasCumprod } from './noise-schedule';
import { predictedData, weightedSum } from './prediction';
import type { StepOptions } from './scheduler';
import { SchedulerError } from './scheduler';
import type { SchedulerConfig, SchedulerParameters } from './scheduler-config';

/** With fewer steps than this the last ones are of lower order, for stability. */
const fewSteps = 15;

/**
 * DPM-Solver++ of order one to three, multistep, as an ordinary or (`sde-dpmsolver++`) as a stochastic differential equation.
 * Source: Lu et al., "DPM-Solver++: Fast Solver for Guided Sampling of Diffusion Probabilistic Models" (2022), equation 9 and
 * algorithm 2; diffusers' DPMSolverMultistepScheduler.
 */
export class DpmSolverMultistepScheduler extends BaseScheduler {
  static readonly parameters: SchedulerParameters = {
    solver_order: 2,
    thresholding: false,
    algorithm_type: 'dpmsolver++',
    solver_type: 'midpoint',
    lower_order_final: true,
    euler_at_final: false,
    use_karras_sigmas: false,
    use_exponential_sigmas: false,
    use_beta_sigmas: false,
    use_lu_lambdas: false,
    use_flow_sigmas: false,
    use_dynamic_shifting: false,
    sigma_min: null,
    sigma_max: null,
    final_sigmas_type: 'zero',
    lambda_min_clipped: -Infinity,
    rescale_betas_zero_snr: false,
  };

  override readonly usesNoise: boolean;
  private readonly alphas: Float32Array;
  private levels: Level[] = [];
  /** Predicted pictures, the newest first. */
  private pictures: Float32Array[] = [];

  constructor(config: SchedulerConfig) {
    super(config);
    // diffusers treats DEIS's and UniPC's values as its own, so that their configurations can be used.
    if (!['dpmsolver++', 'sde-dpmsolver++', 'deis'].includes(config.algorithmType))
      throw new SchedulerError(`algorithm_type "${config.algorithmType}" is not supported.`);
    if (!['midpoint', 'heun', 'logrho', 'bh1', 'bh2'].includes(config.solverType))
      throw new SchedulerError(`solver_type "${config.solverType}" is not supported.`);
    this.usesNoise = config.algorithmType === 'sde-dpmsolver++';
    this.alphas = finiteAlphasCumprod(config);
  }

  protected start(steps: number): Float64Array {
    const { sigmas, timesteps } = solverSchedule(this.config, this.alphas, steps);
    this.levels = Array.from(sigmas, levelOf);
    this.pictures = [];
    return timesteps;
  }

  protected advance(modelOutput: Float32Array, sample: Float32Array, options: StepOptions): Float32Array {
    const { levels, stepIndex: now } = this;
    const from = levels[now];
    const to = levels[now + 1];

    // 1. The picture that the model predicts, and those of the previous steps.
    const data = predictedData(this.config.predictionType, from.alpha, from.sigma);
    const picture = weightedSum([data.sample * data.scale, data.output * data.scale], [sample, modelOutput]);
    this.pictures = [picture, ...this.pictures.slice(0, this.config.solverOrder - 1)];

    // 2. The length of the step; the stochastic equation forgets the sample twice as fast.
    const h = to.lambda - from.lambda;
    const decay = this.usesNoise ? 2 * h : h;

    // 3. The exact solution for a picture that follows a polynomial through the previous ones.
    const sampleWeight = (to.sigma / from.sigma) * (this.usesNoise ? Math.exp(-h) : 1);
    const weights = this.pictureWeights(to.alpha, h, decay);
    const previous = weightedSum([sampleWeight, ...weights], [sample, ...this.pictures.slice(0, weights.length)]);

    // 4. Fresh noise in place of the forgotten part.
    if (this.usesNoise) {
      const fresh = this.noise(options, sample.length);
      const deviation = to.sigma * Math.sqrt(-Math.expm1(-decay));
      for (let i = 0; i < previous.length; i++) previous[i] += deviation * fresh[i];
    }
    return previous;
  }

  protected override maxSteps(): number {
    return this.config.numTrainTimesteps - 1;
  }

  /** Weights of the pictures, the newest first; as many as the order. */
  private pictureWeights(alpha: number, h: number, decay: number): number[] {
    const { levels, stepIndex: now } = this;
    const order = this.currentOrder();
    const constant = -alpha * Math.expm1(-decay);
    if (order === 1) return [constant];

    const smooth = order === 3 || this.config.solverType === 'heun';
    const linear = smooth ? alpha * (Math.expm1(-decay) / decay + 1) : constant / 2;
    const r0 = (levels[now].lambda - levels[now - 1].lambda) / h;
    if (order === 2) return [constant + linear / r0, -linear / r0];

    // diffusers adds this half for the stochastic equation, although the Taylor series would subtract it.
    const half = this.usesNoise ? -0.5 : 0.5;
    const quadratic = alpha * (half - (Math.expm1(-decay) + decay) / decay ** 2);
    const r1 = (levels[now - 1].lambda - levels[now - 2].lambda) / h;
    const older = -(linear * r0 + quadratic) / (r0 + r1);
    const newer = linear - older;
    return [constant + newer / r0, older / r1 - newer / r0, -older / r1];
  }

  private currentOrder(): number {
    const { solverOrder, lowerOrderFinal, eulerAtFinal, finalSigmasType } = this.config;
    const few = lowerOrderFinal && this.timesteps.length < fewSteps;
    const left = this.timesteps.length - this.stepIndex;
    if (left === 1 && (eulerAtFinal || few || finalSigmasType === 'zero')) return 1;
    return Math.min(solverOrder, this.pictures.length, left === 2 && few ? 2 : 3);
  }
}
