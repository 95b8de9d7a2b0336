import { type SchedulerConfig, SchedulerError } from './scheduler-config';

/**
 * The decreasing timesteps of a run, as in diffusers; fractional for `linspace`.
 * Source: table 2 of Lin et al., "Common Diffusion Noise Schedules and Sample Steps are Flawed" (2023).
 * @param span number of timesteps to choose from: all training timesteps, or fewer if the noisiest are cut off
 * @param dropsLast for solvers that compute one more timestep, the end, and drop it
 */
export function spacedTimesteps(
  config: SchedulerConfig,
  steps: number,
  span = config.numTrainTimesteps,
  dropsLast = false,
): Float64Array {
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
  // numpy.arange adds this rounded difference; for some step counts it gives one entry too many, which we leave out.
  const delta = span - stride - span;
  const count = Math.min(steps, Math.ceil(span / stride));
  return Float64Array.from({ length: count }, (_, i) => roundHalfEven(span + i * delta) - 1);
}

/** The integer training timesteps of a run (DDIM, DDPM, PNDM). Throws when the offset leads past the last one. */
export function integerTimesteps(config: SchedulerConfig, steps: number): Float64Array {
  const { numTrainTimesteps: span, stepsOffset } = config;
  const timesteps = spacedTimesteps(config, steps).map(roundHalfEven);
  if (timesteps[0] >= span)
    throw new SchedulerError(`${steps} steps with a steps_offset of ${stepsOffset} lead past timestep ${span - 1}.`);
  return timesteps;
}

/** `numpy.linspace` in double precision, including the end. */
export function linspace(start: number, end: number, count: number): Float64Array {
  const step = count > 1 ? (end - start) / (count - 1) : 0;
  const points = Float64Array.from({ length: count }, (_, i) => i * step + start);
  if (count > 1) points[count - 1] = end;
  return points;
}

/** `numpy.round`: halves are rounded to even. */
export function roundHalfEven(value: number): number {
  const floor = Math.floor(value);
  const rest = value - floor;
  return rest > 0.5 || (rest === 0.5 && floor % 2 !== 0) ? floor + 1 : floor;
}

/**
 * Steps that a picture of this strength is drawn anew in. Source: `get_timesteps` of diffusers' pipelines, whose older
 * ones cut the steps that are drawn to a whole number, and those of flow matching the steps before them.
 */
export function drawnSteps(steps: number, strength: number, isOfFlow: boolean): number {
  const drawn = Math.min(steps * strength, steps);
  return isOfFlow ? steps - Math.trunc(steps - drawn) : Math.trunc(drawn);
}
