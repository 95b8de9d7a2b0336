import type { Generator } from '../random/generator';
import { DpmSolverScheduler, type ExponentialStep } from './dpm-solver-scheduler';
import { weightedSum } from './prediction';
import type { RunSize } from './scheduler';
import type { SchedulerConfig, SchedulerParameters } from './scheduler-config';
import { solverParameters } from './solver-scheduler';

/**
 * DPM-Solver and DPM-Solver++ of order one to three, singlestep: the steps come in groups of one, two or three, and
 * each starts at the sample of its group's beginning.
 * Source: Lu et al., "DPM-Solver++: Fast Solver for Guided Sampling of Diffusion Probabilistic Models" (2022),
 * algorithm 1; diffusers' DPMSolverSinglestepScheduler.
 */
export class DpmSolverSinglestepScheduler extends DpmSolverScheduler {
  static readonly parameters: SchedulerParameters = {
    ...solverParameters,
    algorithm_type: 'dpmsolver++',
    solver_type: 'midpoint',
    lower_order_final: false,
    final_sigmas_type: 'zero',
    lambda_min_clipped: -Infinity,
  };

  private orders: number[] = [];
  /** The sample at the beginning of the group. */
  private origin: Float32Array | undefined;

  constructor(config: SchedulerConfig) {
    // The class has no timestep_spacing.
    super({ ...config, timestepSpacing: 'linspace' }, ['dpmsolver', 'dpmsolver++', 'sde-dpmsolver++']);
  }

  protected override start(steps: number, size?: RunSize): Float64Array {
    this.orders = this.ordersOf(steps);
    return super.start(steps, size);
  }

  protected advance(modelOutput: Float32Array, sample: Float32Array, generator: () => Generator): Float32Array {
    const { levels, stepIndex: now } = this;

    // 1. The picture, or the noise, that the model predicts, and those of the previous steps.
    this.keep(this.outputOf(modelOutput, sample), 3);

    // 2. A step over the whole group so far.
    // A run that begins in the middle of a group has fewer outputs of it.
    const order = Math.min(this.orders[now], this.outputs.length);
    if (order === 1) this.origin = sample;
    const first = now - order + 1;
    const step = this.exponentialStep(levels[first], levels[now + 1]);

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
    return this.renew(previous, step, generator);
  }

  /**
   * The place of each step in its group. Without `lower_order_final` all groups are whole, which not every
   * number of steps allows.
   */
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
  { constant, linear, quadratic }: ExponentialStep,
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
