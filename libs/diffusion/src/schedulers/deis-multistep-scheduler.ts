import { BaseScheduler } from './base-scheduler';
import type { Level } from './lambdas';
import { levelOf, solverSchedule } from './lambdas';
import { alphasCumprod } from './noise-schedule';
import { noise, weightedSum } from './prediction';
import { SchedulerError } from './scheduler';
import { dynamicThresholding } from './scheduler-config';
import type { SchedulerConfig, SchedulerParameters } from './scheduler-config';

/** With fewer steps than this the last ones are of lower order, for stability. */
const fewSteps = 15;

/**
 * Diffusion exponential integrator sampler of order one to three, multistep, with polynomials in the logarithm
 * of rho = sigma / alpha.
 * Source: Zhang and Chen, "Fast Sampling of Diffusion Models with Exponential Integrator" (2023), section 3.3;
 * diffusers' DEISMultistepScheduler.
 */
export class DeisMultistepScheduler extends BaseScheduler {
  static readonly parameters: SchedulerParameters = {
    solver_order: 2,
    ...dynamicThresholding,
    algorithm_type: 'deis',
    solver_type: 'logrho',
    lower_order_final: true,
    use_karras_sigmas: false,
    use_exponential_sigmas: false,
    use_beta_sigmas: false,
    use_flow_sigmas: false,
    use_dynamic_shifting: false,
  };

  private readonly alphas: Float32Array;
  private levels: Level[] = [];
  /** Predicted noise, the newest first. */
  private outputs: Float32Array[] = [];

  constructor(config: SchedulerConfig) {
    super({ ...config, finalSigmasType: 'sigma_min' });
    // diffusers treats the values of the DPM solvers and UniPC as its own, so that their configurations can be used.
    if (!['deis', 'dpmsolver', 'dpmsolver++'].includes(config.algorithmType))
      throw new SchedulerError(`algorithm_type "${config.algorithmType}" is not supported.`);
    if (!['logrho', 'midpoint', 'heun', 'bh1', 'bh2'].includes(config.solverType))
      throw new SchedulerError(`solver_type "${config.solverType}" is not supported.`);
    this.alphas = alphasCumprod(config);
  }

  protected start(steps: number): Float64Array {
    const { sigmas, timesteps } = solverSchedule(this.config, this.alphas, steps);
    this.levels = Array.from(sigmas, levelOf);
    this.outputs = [];
    return timesteps;
  }

  protected advance(modelOutput: Float32Array, sample: Float32Array): Float32Array {
    const { levels, stepIndex: now } = this;
    const from = levels[now];
    const to = levels[now + 1];

    // 1. The noise that the model predicts, and that of the previous steps.
    this.outputs = [
      noise(this.config, from, modelOutput, sample),
      ...this.outputs.slice(0, this.config.solverOrder - 1),
    ];

    // 2. The integral over rho of the polynomial through them.
    const outputs = this.outputs.slice(0, this.currentOrder());
    const places = outputs.map((_, k) => -levels[now - k].lambda);
    const weights = outputs.map((_, k) => to.alpha * basisIntegral(places, k, -from.lambda, -to.lambda));

    // 3. The sample, whose signal changes in the same ratio as alpha.
    return weightedSum([to.alpha / from.alpha, ...weights], [sample, ...outputs]);
  }

  protected override maxSteps(): number {
    return this.config.numTrainTimesteps - 1;
  }

  private currentOrder(): number {
    const few = this.config.lowerOrderFinal && this.timesteps.length < fewSteps;
    const left = this.timesteps.length - this.stepIndex;
    return Math.min(this.outputs.length, few && left < 3 ? left : 3);
  }
}

/**
 * The integral over rho, from exp(start) to exp(end), of Lagrange's basis polynomial k, at most quadratic, in log(rho).
 */
function basisIntegral(places: readonly number[], k: number, start: number, end: number): number {
  const others = places.filter((_, j) => j !== k);
  const scale = others.reduce((product, place) => product * (places[k] - place), 1);
  // The polynomial (u - a)(u - b), by its coefficients, and the antiderivative of u^n exp(u).
  const sum = others.reduce((total, place) => total + place, 0);
  const product = others.reduce((total, place) => total * place, 1);
  const antiderivative = (u: number): number => {
    if (others.length === 0) return Math.exp(u);
    if (others.length === 1) return Math.exp(u) * (u - 1 - sum);
    return Math.exp(u) * (u * u - 2 * u + 2 - sum * (u - 1) + product);
  };
  return (antiderivative(end) - antiderivative(start)) / scale;
}
