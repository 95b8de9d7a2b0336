import { SchedulerError } from './scheduler';
import type { SchedulerConfig } from './scheduler-config';

/** How a scheduler reads `timestep_spacing`. */
export interface Spacing {
  /** Number of timesteps to lay out. */
  steps: number;
  /** Timesteps to lay them over: all training timesteps, or fewer where the noisiest are cut off. */
  span: number;
  /** True for the solvers that lay out one more, the end, and leave it away. */
  dropsLast: boolean;
}

/**
 * The timesteps of a run, falling, as diffusers lays them out; fractional for `linspace`.
 * Source: table 2 of Lin et al., "Common Diffusion Noise Schedules and Sample Steps are Flawed" (2023).
 */
export function spacedTimesteps(config: SchedulerConfig, { steps, span, dropsLast }: Spacing): Float64Array {
  const points = dropsLast ? steps + 1 : steps;
  if (config.timestepSpacing === 'linspace')
    return linspace(0, span - 1, points)
      .reverse()
      .slice(0, steps);
  if (config.timestepSpacing === 'leading') {
    const stride = Math.floor(span / points);
    return Float64Array.from({ length: steps }, (_, i) => (points - 1 - i) * stride + config.stepsOffset);
  }
  const stride = config.numTrainTimesteps / steps;
  // numpy.arange adds this rounded difference, and for some step counts an entry too many, which we leave out.
  const delta = span - stride - span;
  const count = Math.min(steps, Math.ceil(span / stride));
  return Float64Array.from({ length: count }, (_, i) => roundHalfEven(span + i * delta) - 1);
}

/** `numpy.linspace` in double precision, the end included. */
export function linspace(start: number, end: number, count: number): Float64Array {
  const step = count > 1 ? (end - start) / (count - 1) : 0;
  const points = Float64Array.from({ length: count }, (_, i) => i * step + start);
  if (count > 1) points[count - 1] = end;
  return points;
}

/** `numpy.round`: halves go to the even neighbour. */
export function roundHalfEven(value: number): number {
  const floor = Math.floor(value);
  const rest = value - floor;
  return rest > 0.5 || (rest === 0.5 && floor % 2 !== 0) ? floor + 1 : floor;
}

/** The whole training timesteps of a run over all of them (DDIM, DDPM, PNDM). Throws when the offset leads past the last. */
export function integerTimesteps(config: SchedulerConfig, steps: number): Float64Array {
  const { numTrainTimesteps: span, stepsOffset } = config;
  const timesteps = spacedTimesteps(config, { steps, span, dropsLast: false }).map(roundHalfEven);
  if (timesteps[0] >= span)
    throw new SchedulerError(`${steps} steps with a steps_offset of ${stepsOffset} lead past timestep ${span - 1}.`);
  return timesteps;
}
