import { noise, weightedSum } from './prediction';
import type { SchedulerConfig, SchedulerParameters } from './scheduler-config';
import { solverParameters, SolverScheduler } from './solver-scheduler';

/**
 * Diffusion exponential integrator sampler of order one to three, multistep, with polynomials in the logarithm
 * of rho = sigma / alpha.
 * Source: Zhang and Chen, "Fast Sampling of Diffusion Models with Exponential Integrator" (2023), section 3.3;
 * diffusers' DEISMultistepScheduler.
 */
export class DeisMultistepScheduler extends SolverScheduler {
  static readonly parameters: SchedulerParameters = {
    ...solverParameters,
    algorithm_type: 'deis',
    solver_type: 'logrho',
    lower_order_final: true,
  };

  constructor(config: SchedulerConfig) {
    super({ ...config, finalSigmasType: 'sigma_min' }, ['deis', 'dpmsolver', 'dpmsolver++']);
  }

  protected advance(modelOutput: Float32Array, sample: Float32Array): Float32Array {
    const { levels, stepIndex: now } = this;
    const from = levels[now];
    const to = levels[now + 1];

    // 1. The noise that the model predicts, and that of the previous steps.
    this.keep(noise(this.config, from, modelOutput, sample));

    // 2. The integral over rho of the polynomial through them.
    const outputs = this.outputs.slice(0, this.currentOrder());
    const places = outputs.map((_, k) => -levels[now - k].lambda);
    const weights = outputs.map((_, k) => to.alpha * basisIntegral(places, k, -from.lambda, -to.lambda));

    // 3. The sample, whose signal changes in the same ratio as alpha.
    return weightedSum([to.alpha / from.alpha, ...weights], [sample, ...outputs]);
  }

  private currentOrder(): number {
    const { stepsLeft: left } = this;
    return Math.min(this.outputs.length, this.endsLower && left < 3 ? left : 3);
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
