import type { RunSize } from './scheduler';
import { type SchedulerConfig, SchedulerError } from './scheduler-config';

/**
 * Noise levels of flow matching, moved towards noise: by the same amount for all pictures, or by more for larger ones.
 * Source: Esser et al., "Scaling Rectified Flow Transformers for High-Resolution Image Synthesis" (2024), equation 23;
 * diffusers' FlowMatchEulerDiscreteScheduler.
 * @param sigmas from 1, which is noise, down to 0
 * @param shift for configurations without a dynamic one
 */
export function shiftSigmas(
  sigmas: Float64Array,
  shift: number,
  config: SchedulerConfig,
  size: RunSize | undefined,
): Float64Array {
  const factor = shiftFactor(shift, config, sigmas.length, size);
  const shifted = sigmas.map((sigma) => (factor * sigma) / (1 + (factor - 1) * sigma));
  const signal = 1 - shifted[shifted.length - 1];
  if (!config.shiftTerminal || signal === 0) return shifted;
  const scale = signal / (1 - config.shiftTerminal);
  return shifted.map((sigma) => 1 - (1 - sigma) / scale);
}

/** How far noise levels are moved in a run of so many steps: that of `shiftSigmas`. */
export const shiftFactor = (shift: number, config: SchedulerConfig, steps: number, size?: RunSize): number =>
  config.useDynamicShifting ? dynamicShift(config, steps, size) : shift;

function dynamicShift(config: SchedulerConfig, steps: number, size: RunSize | undefined): number {
  if (!size) throw new SchedulerError('use_dynamic_shifting needs the number of tokens of the picture.');
  const mu = size.muOf?.(size.tokens, steps) ?? calculateShift(size.tokens, config);
  return shiftOf(mu, size.tokens, config);
}

function shiftOf(mu: number, tokens: number, { timeShiftType }: SchedulerConfig): number {
  const factor = timeShiftType === 'linear' ? mu : Math.exp(mu);
  if (factor > 0 && factor < Infinity) return factor;
  throw new SchedulerError(`The shift for ${tokens} tokens must be positive and finite, but is ${factor}.`);
}

/** @throws SchedulerError for a line whose shifts of small pictures, or of large ones, no noise level can have */
export function assertShifts(config: SchedulerConfig): void {
  for (const tokens of [4, 2 ** 16]) shiftOf(calculateShift(tokens, config), tokens, config);
}

/** Mu on a line through those of two numbers of tokens. Source: `calculate_shift` of diffusers' pipelines. */
export function calculateShift(tokens: number, config: SchedulerConfig): number {
  const { baseShift, maxShift, baseImageSeqLen, maxImageSeqLen } = config;
  const slope = (maxShift - baseShift) / (maxImageSeqLen - baseImageSeqLen);
  return tokens * slope + (baseShift - slope * baseImageSeqLen);
}

/**
 * Mu of FLUX.2, on a line through those of 10 and of 200 steps; of many tokens it is that of 200 steps.
 * Source: `compute_empirical_mu` of diffusers' Flux2KleinPipeline.
 */
export function computeEmpiricalMu(tokens: number, steps: number): number {
  const of10 = 8.73809524e-5 * tokens + 1.89833333;
  const of200 = 0.00016927 * tokens + 0.45666666;
  if (tokens > 4300) return of200;
  const slope = (of200 - of10) / 190;
  return slope * steps + (of200 - 200 * slope);
}
