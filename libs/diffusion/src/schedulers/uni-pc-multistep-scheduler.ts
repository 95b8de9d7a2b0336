import { noise, picture, weightedSum } from './prediction';
import type { RunSize } from './scheduler';
import type { SchedulerParameters } from './scheduler-config';
import { solverParameters, SolverScheduler } from './solver-scheduler';
import { linspace } from './timesteps';

/**
 * Unified predictor-corrector of order one to three, multistep. The corrector needs no call of the denoiser of its own:
 * it repeats the previous step with the model's output at its end.
 * Source: Zhao et al., "UniPC: A Unified Predictor-Corrector Framework for Fast Sampling of Diffusion Models" (2023),
 * equations 3, 8 and 9; diffusers' UniPCMultistepScheduler.
 */
export class UniPcMultistepScheduler extends SolverScheduler {
  static readonly parameters: SchedulerParameters = {
    ...solverParameters,
    predict_x0: true,
    solver_type: 'bh2',
    lower_order_final: true,
    disable_corrector: [],
    solver_p: null,
    final_sigmas_type: 'zero',
    rescale_betas_zero_snr: false,
    sigma_min: null,
    sigma_max: null,
    shift_terminal: null,
  };

  /** The sample at the start of the last step, and the order of that step. */
  private origin: Float32Array | undefined;
  private originOrder = 1;

  protected override start(steps: number, size?: RunSize): Float64Array {
    this.origin = undefined;
    return super.start(steps, size);
  }

  protected override flowSigmas(steps: number): Float64Array {
    return linspace(1, 1 / this.config.numTrainTimesteps, steps + 1).slice(0, steps);
  }

  protected advance(modelOutput: Float32Array, sample: Float32Array): Float32Array {
    const { solverOrder, lowerOrderFinal, predictX0, disableCorrector } = this.config;
    const now = this.stepIndex;

    // 1. The model's output for the sample.
    const output = (predictX0 ? picture : noise)(this.config, this.levels[now], modelOutput, sample);

    // 2. Correct the sample: repeat the last step with the output at its end.
    const corrects = this.origin && !disableCorrector.includes(now - 1);
    const corrected = corrects ? this.move(this.origin!, now - 1, this.originOrder, output) : sample;

    // 3. Predict the next sample. A step that ends without noise can only be of first order.
    this.keep(output);
    const ends = this.levels[now + 1].sigma === 0;
    const order = ends ? 1 : Math.min(solverOrder, this.outputs.length, lowerOrderFinal ? this.stepsLeft : solverOrder);
    this.origin = corrected;
    this.originOrder = order;
    return this.move(corrected, now, order);
  }

  /**
   * The step from noise level `index` to the next with the newest `order` outputs (equation 3), and with the output at
   * its end if it is known (the corrector).
   */
  private move(sample: Float32Array, index: number, order: number, end?: Float32Array): Float32Array {
    const { predictX0, solverType } = this.config;
    const from = this.levels[index];
    const to = this.levels[index + 1];

    // 1. Positions of the outputs, in steps from `from`; the end of this step is at 1.
    const h = to.lambda - from.lambda;
    const places = Array.from({ length: order - 1 }, (_, i) => (this.levels[index - 1 - i].lambda - from.lambda) / h);
    const known = end ? [...places, 1] : places;

    // 2. The weights of their differences from the newest output, chosen to match the polynomial's moments.
    const decay = predictX0 ? -h : h;
    const base = Math.expm1(decay);
    const basis = solverType === 'bh1' ? decay : base;
    const rhos = differenceWeights(known, decay, basis);

    // 3. The exact solution for a constant output, plus the differences.
    const [lead, gain] = predictX0 ? [to.sigma / from.sigma, to.alpha] : [to.alpha / from.alpha, to.sigma];
    const weights = known.map((place, k) => (-gain * basis * rhos[k]) / place);
    const newest = -gain * base - weights.reduce((sum, weight) => sum + weight, 0);
    const outputs = this.outputs.slice(0, order);
    return weightedSum([lead, newest, ...weights], end ? [sample, ...outputs, end] : [sample, ...outputs]);
  }
}

/** Solves sum_k rho_k * place_k^(i-1) = b_i (equation 9), except that diffusers uses 1/2 for a single difference. */
function differenceWeights(places: readonly number[], decay: number, basis: number): number[] {
  if (places.length <= 1) return places.map(() => 0.5);
  const right: number[] = [];
  let phi = Math.expm1(decay) / decay - 1;
  let factorial = 1;
  for (let i = 1; i <= places.length; i++) {
    right.push((phi * factorial) / basis);
    factorial *= i + 1;
    phi = phi / decay - 1 / factorial;
  }
  return solveVandermonde(places, right);
}

/**
 * Solves sum_k x_k * places_k^i = right_i for i = 0, 1, ... by eliminating one place after the
 * other (Björck and Pereyra).
 */
function solveVandermonde(places: readonly number[], right: readonly number[]): number[] {
  const x = [...right];
  const last = x.length - 1;
  for (let k = 0; k < last; k++) for (let i = last; i > k; i--) x[i] -= places[k] * x[i - 1];
  for (let k = last - 1; k >= 0; k--) {
    for (let i = k + 1; i <= last; i++) x[i] /= places[i] - places[i - k - 1];
    for (let i = k; i < last; i++) x[i] -= x[i + 1];
  }
  return x;
}
