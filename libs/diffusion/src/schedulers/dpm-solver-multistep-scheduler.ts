import type { Generator } from '../random/generator';
import { DpmSolverScheduler, type ExponentialStep } from './dpm-solver-scheduler';
import { weightedSum } from './prediction';
import { type SchedulerConfig, SchedulerError, type SchedulerParameters } from './scheduler-config';
import { solverParameters } from './solver-scheduler';

/**
 * DPM-Solver and DPM-Solver++ of order one to three, multistep, as an ordinary or (`sde-`) as a stochastic
 * differential equation.
 * Source: Lu et al., "DPM-Solver++: Fast Solver for Guided Sampling of Diffusion Probabilistic Models" (2022), equation
 * 9 and algorithm 2; diffusers' DPMSolverMultistepScheduler.
 */
export class DpmSolverMultistepScheduler extends DpmSolverScheduler {
  static readonly parameters: SchedulerParameters = {
    ...solverParameters,
    algorithm_type: 'dpmsolver++',
    solver_type: 'midpoint',
    lower_order_final: true,
    euler_at_final: false,
    use_lu_lambdas: false,
    sigma_min: null,
    sigma_max: null,
    final_sigmas_type: 'zero',
    lambda_min_clipped: -Infinity,
    rescale_betas_zero_snr: false,
  };

  constructor(config: SchedulerConfig) {
    super(config, ['dpmsolver', 'dpmsolver++', 'sde-dpmsolver', 'sde-dpmsolver++']);
    if (config.algorithmType === 'sde-dpmsolver' && config.solverOrder === 3)
      throw new SchedulerError('algorithm_type "sde-dpmsolver" has no solver_order of 3.');
  }

  protected advance(modelOutput: Float32Array, sample: Float32Array, generator: () => Generator): Float32Array {
    const { levels, stepIndex: now } = this;

    // 1. The picture, or the noise, that the model predicts, and those of the previous steps.
    this.keep(this.outputOf(modelOutput, sample));
    if (levels[now + 1].lambda === levels[now].lambda) return sample.slice();

    // 2. The exact solution for an output that follows a polynomial through the previous ones.
    const step = this.exponentialStep(levels[now], levels[now + 1]);
    const weights = this.outputWeights(step);
    const previous = weightedSum([step.sampleWeight, ...weights], [sample, ...this.outputs.slice(0, weights.length)]);

    // 3. Fresh noise in place of the forgotten part.
    return this.renew(previous, step, generator);
  }

  /** Weights of the outputs, the newest first; as many as the order. */
  private outputWeights({ constant, linear: smoothLinear, quadratic }: ExponentialStep): number[] {
    const { levels, stepIndex: now } = this;
    const order = this.currentOrder();
    if (order === 1) return [constant];

    const h = levels[now + 1].lambda - levels[now].lambda;
    const linear = order === 3 || this.config.solverType === 'heun' ? smoothLinear : constant / 2;
    const r0 = (levels[now].lambda - levels[now - 1].lambda) / h;
    if (order === 2) return [constant + linear / r0, -linear / r0];

    const r1 = (levels[now - 1].lambda - levels[now - 2].lambda) / h;
    const older = -(linear * r0 + quadratic) / (r0 + r1);
    const newer = linear - older;
    return [constant + newer / r0, older / r1 - newer / r0, -older / r1];
  }

  private currentOrder(): number {
    const { solverOrder, eulerAtFinal, finalSigmasType } = this.config;
    const { stepsLeft: left, endsLower } = this;
    if (left === 1 && (eulerAtFinal || endsLower || finalSigmasType === 'zero')) return 1;
    return Math.min(solverOrder, this.outputs.length, left === 2 && endsLower ? 2 : 3);
  }
}
