import { BaseScheduler } from './base-scheduler';
import { checkDpmSolver, exponentialStep, solverForm } from './exponential-integrator';
import type { SolverForm } from './exponential-integrator';
import type { Level } from './lambdas';
import { levelOf, solverSchedule } from './lambdas';
import { alphasCumprod } from './noise-schedule';
import { noise, picture, weightedSum } from './prediction';
import type { StepOptions } from './scheduler';
import { dynamicThresholding } from './scheduler-config';
import type { SchedulerConfig, SchedulerParameters } from './scheduler-config';

/**
 * DPM-Solver and DPM-Solver++ of order one to three, singlestep: the steps come in groups of one, two or three, and each starts at
 * the sample of its group's beginning.
 * Source: Lu et al., "DPM-Solver++: Fast Solver for Guided Sampling of Diffusion Probabilistic Models" (2022), algorithm 1;
 * diffusers' DPMSolverSinglestepScheduler.
 */
export class DpmSolverSinglestepScheduler extends BaseScheduler {
  static readonly parameters: SchedulerParameters = {
    solver_order: 2,
    ...dynamicThresholding,
    algorithm_type: 'dpmsolver++',
    solver_type: 'midpoint',
    lower_order_final: false,
    use_karras_sigmas: false,
    use_exponential_sigmas: false,
    use_beta_sigmas: false,
    use_flow_sigmas: false,
    use_dynamic_shifting: false,
    final_sigmas_type: 'zero',
    lambda_min_clipped: -Infinity,
  };

  override readonly usesNoise: boolean;
  private readonly form: SolverForm;
  private readonly alphas: Float32Array;
  private levels: Level[] = [];
  private orders: number[] = [];
  /** Predicted pictures, or predicted noise, the newest first. */
  private outputs: Float32Array[] = [];
  /** The sample at the beginning of the group. */
  private origin: Float32Array | undefined;

  constructor(config: SchedulerConfig) {
    // The class has no timestep_spacing.
    super({ ...config, timestepSpacing: 'linspace' });
    checkDpmSolver(config, ['dpmsolver', 'dpmsolver++', 'sde-dpmsolver++']);
    this.form = solverForm(config.algorithmType === 'deis' ? 'dpmsolver++' : config.algorithmType);
    this.usesNoise = this.form.stochastic;
    this.alphas = alphasCumprod(config);
  }

  protected start(steps: number): Float64Array {
    const { sigmas, timesteps } = solverSchedule(this.config, this.alphas, steps);
    this.levels = Array.from(sigmas, levelOf);
    this.orders = this.ordersOf(steps);
    this.outputs = [];
    return timesteps;
  }

  protected advance(modelOutput: Float32Array, sample: Float32Array, options: StepOptions): Float32Array {
    const { levels, stepIndex: now } = this;

    // 1. The picture, or the noise, that the model predicts, and those of the previous steps.
    const output = (this.form.ofNoise ? noise : picture)(this.config, levels[now], modelOutput, sample);
    this.outputs = [output, ...this.outputs.slice(0, 2)];

    // 2. A step over the whole group so far.
    const order = this.orders[now];
    if (order === 1) this.origin = sample;
    const first = now - order + 1;
    const step = exponentialStep(levels[first], levels[now + 1], this.form);

    // 3. The exact solution for an output that follows a polynomial through those of the group.
    const heun = this.config.solverType === 'heun';
    const h = levels[now + 1].lambda - levels[first].lambda;
    const ratios = this.outputs.slice(0, order - 1).map((_, k) => (levels[now - k].lambda - levels[first].lambda) / h);
    const weights = groupWeights(order === 2 && !heun ? { ...step, linear: step.constant / 2 } : step, ratios, heun);
    const previous = weightedSum(
      [step.sampleWeight, ...weights],
      [this.origin ?? sample, ...this.outputs.slice(0, order)],
    );

    // 4. Fresh noise in place of the forgotten part.
    if (this.form.stochastic) {
      const fresh = this.noise(options, sample.length);
      for (let i = 0; i < previous.length; i++) previous[i] += step.deviation * fresh[i];
    }
    return previous;
  }

  protected override maxSteps(): number {
    return this.config.numTrainTimesteps - 1;
  }

  /** The place of each step in its group. Without `lower_order_final` all groups are whole, which not every number of steps allows. */
  private ordersOf(steps: number): number[] {
    const { solverOrder: most, finalSigmasType, lowerOrderFinal } = this.config;
    const orders = Array.from({ length: steps }, (_, i) => (i % most) + 1);
    if (!lowerOrderFinal && steps % most === 0 && finalSigmasType === 'sigma_min') return orders;
    // The last step is of first order; a whole last group of three is split, so that only one step loses its order.
    if (most === 3 && steps % 3 === 0) orders.splice(-3, 3, 1, 2, 1);
    else if (most === 2 || finalSigmasType === 'zero') orders[steps - 1] = 1;
    return orders;
  }
}

/**
 * Weights of the group's outputs, the newest first.
 * @param ratios where the outputs but the oldest are, in lengths of the step, the newest first
 */
function groupWeights(
  { constant, linear, quadratic }: { constant: number; linear: number; quadratic: number },
  ratios: readonly number[],
  heun: boolean,
): number[] {
  const [r0, r1] = ratios;
  if (r0 === undefined) return [constant];
  if (r1 === undefined) return [linear / r0, constant - linear / r0];
  // Divided differences from the oldest output: of the newest (over r0) and of the one between (over r1).
  const newer = heun ? (-r1 * linear + 2 * quadratic) / (r0 - r1) : linear;
  const older = heun ? (r0 * linear - 2 * quadratic) / (r0 - r1) : 0;
  return [newer / r0, older / r1, constant - newer / r0 - older / r1];
}
