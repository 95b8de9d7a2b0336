import type { Level } from './lambdas';
import { SchedulerError } from './scheduler';
import type { SchedulerConfig } from './scheduler-config';

/**
 * One step of a DPM solver: the exact solution of the linear part of the equation, and weights for the part
 * that the U-Net gives, as a polynomial in lambda through its outputs. The four forms of the equation differ
 * in three numbers only.
 * Source: Lu et al., "DPM-Solver" (2022), equations 3.4 and 3.7, and "DPM-Solver++" (2022),
 * equations 8, 9 and appendix B.
 */
export interface ExponentialStep {
  /** Factor of the sample at the start of the step. */
  sampleWeight: number;
  /**
   * Weights of the polynomial's value, first and second derivative at the start of the step, in lengths of the step.
   */
  constant: number;
  linear: number;
  quadratic: number;
  /** Standard deviation of the fresh noise. */
  deviation: number;
}

/** In which form the solver integrates: over predicted pictures or noise, ordinary or stochastic. */
export interface SolverForm {
  ofNoise: boolean;
  stochastic: boolean;
}

/** The algorithm types of diffusers' DPM solvers. */
export function solverForm(algorithmType: string): SolverForm {
  return { ofNoise: !algorithmType.endsWith('++'), stochastic: algorithmType.startsWith('sde-') };
}

/** The weights of a step. A step to no noise at all (an infinite lambda) can only be made over pictures. */
export function exponentialStep(from: Level, to: Level, { ofNoise, stochastic }: SolverForm): ExponentialStep {
  const h = to.lambda - from.lambda;
  const gain = ofNoise ? to.sigma * (stochastic ? 2 : 1) : to.alpha;
  // The stochastic equation over pictures forgets the sample twice as fast.
  const decay = ofNoise ? -h : stochastic ? 2 * h : h;
  // diffusers adds this half for the stochastic equation, although the Taylor series would subtract it.
  const half = stochastic ? -0.5 : 0.5;
  const forgets = stochastic && !ofNoise ? Math.exp(-h) : 1;
  return {
    sampleWeight: ofNoise ? to.alpha / from.alpha : (to.sigma / from.sigma) * forgets,
    constant: -gain * Math.expm1(-decay),
    linear: gain * (Math.expm1(-decay) / decay + 1),
    quadratic: gain * (half - (Math.expm1(-decay) + decay) / decay ** 2),
    deviation: stochastic ? to.sigma * Math.sqrt(Math.abs(Math.expm1(ofNoise ? 2 * h : -2 * h))) : 0,
  };
}

/**
 * diffusers treats the values of DEIS and UniPC as its own, so that their configurations can be used.
 * @throws SchedulerError if the configuration is none of a DPM solver with these algorithm types
 */
export function checkDpmSolver(config: SchedulerConfig, algorithmTypes: readonly string[]): void {
  const { algorithmType, solverType, finalSigmasType } = config;
  if (![...algorithmTypes, 'deis'].includes(algorithmType))
    throw new SchedulerError(`algorithm_type "${algorithmType}" is not supported.`);
  if (!['midpoint', 'heun', 'logrho', 'bh1', 'bh2'].includes(solverType))
    throw new SchedulerError(`solver_type "${solverType}" is not supported.`);
  if (algorithmType.endsWith('dpmsolver') && finalSigmasType === 'zero')
    throw new SchedulerError(`algorithm_type "${algorithmType}" needs the final_sigmas_type "sigma_min".`);
}
