import { choice, flag, integer, number, optionalInteger, sigma, steps, text, trainedBetas } from './config-values';
import { SchedulerError } from './scheduler';
import type { SchedulerJson } from './scheduler-json';

const predictionTypes = ['epsilon', 'sample', 'v_prediction'] as const;
const timestepSpacings = ['leading', 'trailing', 'linspace'] as const;
const betaSchedules = ['linear', 'scaled_linear', 'squaredcos_cap_v2'] as const;
const finalSigmasTypes = ['zero', 'sigma_min'] as const;
const sigmaSchedules = ['karras', 'exponential'] as const;

export type PredictionType = (typeof predictionTypes)[number];

/** diffusers' configuration of a scheduler, checked and completed with the defaults of the class. */
export interface SchedulerConfig {
  numTrainTimesteps: number;
  betaStart: number;
  betaEnd: number;
  betaSchedule: (typeof betaSchedules)[number];
  trainedBetas: Float32Array | undefined;
  rescaleBetasZeroSnr: boolean;
  predictionType: PredictionType;
  timestepSpacing: (typeof timestepSpacings)[number];
  stepsOffset: number;
  setAlphaToOne: boolean;
  /** The predicted picture is clipped to plus and minus this; Infinity if `clip_sample` is off. */
  clipRange: number;
  /** Dynamic thresholding of the predicted picture, in place of clipping. */
  thresholding: Thresholding | undefined;
  varianceType: string;
  skipPrkSteps: boolean;
  useKarrasSigmas: boolean;
  useExponentialSigmas: boolean;
  useBetaSigmas: boolean;
  useLuLambdas: boolean;
  sigmaMin: number | undefined;
  sigmaMax: number | undefined;
  finalSigmasType: (typeof finalSigmasTypes)[number];
  algorithmType: string;
  solverType: string;
  solverOrder: number;
  lowerOrderFinal: boolean;
  eulerAtFinal: boolean;
  lambdaMinClipped: number;
  predictX0: boolean;
  disableCorrector: readonly number[];
  originalInferenceSteps: number;
  timestepScaling: number;
  /** Seed of a noise sampler of its own; the generator's seed if not given. */
  noiseSamplerSeed: number | undefined;
  sigmaData: number;
  rho: number;
  sigmaSchedule: (typeof sigmaSchedules)[number];
}

/**
 * Values above the quantile `ratio` of the absolute values, which is taken as 1 to `max`, are clipped,
 * and all divided by it.
 */
export interface Thresholding {
  ratio: number;
  max: number;
}

/** Parameters of every diffusers class, with their defaults. */
const common = {
  num_train_timesteps: 1000,
  beta_start: 0.0001,
  beta_end: 0.02,
  beta_schedule: 'linear',
  trained_betas: null,
  prediction_type: 'epsilon',
  timestep_spacing: 'linspace',
  steps_offset: 0,
} satisfies SchedulerJson;

/** Parameters of the classes that can limit the predicted picture by its own values. */
export const dynamicThresholding = {
  thresholding: false,
  dynamic_thresholding_ratio: 0.995,
  sample_max_value: 1,
} satisfies SchedulerJson;

/** Parameters of some classes only, with the value that means absence. */
const absent = {
  rescale_betas_zero_snr: false,
  set_alpha_to_one: true,
  clip_sample: false,
  clip_sample_range: 1,
  ...dynamicThresholding,
  variance_type: '',
  skip_prk_steps: false,
  use_karras_sigmas: false,
  use_exponential_sigmas: false,
  use_beta_sigmas: false,
  use_lu_lambdas: false,
  use_flow_sigmas: false,
  use_dynamic_shifting: false,
  sigma_min: null,
  sigma_max: null,
  final_sigmas_type: 'zero',
  interpolation_type: 'linear',
  timestep_type: 'discrete',
  algorithm_type: '',
  solver_type: '',
  solver_order: 2,
  lower_order_final: true,
  euler_at_final: false,
  lambda_min_clipped: -Infinity,
  predict_x0: true,
  disable_corrector: [],
  solver_p: null,
  shift_terminal: null,
  original_inference_steps: 50,
  timestep_scaling: 10,
  noise_sampler_seed: null,
  sigma_data: 0.5,
  rho: 7,
  sigma_schedule: 'karras',
} satisfies SchedulerJson;

/** The parameters of one class and their defaults, beyond the common ones, from its Python signature. */
export type SchedulerParameters = Partial<Record<keyof typeof common | keyof typeof absent, unknown>>;

/**
 * Translates a `scheduler_config.json` once, as diffusers reads it: keys that the class does not have are ignored, keys
 * that are absent or null get its defaults.
 * @throws SchedulerError for a wrong or unsupported value.
 */
export function readSchedulerConfig(json: SchedulerJson, parameters: SchedulerParameters): SchedulerConfig {
  const values = withDefaults(json, parameters);
  refuseUnsupported(values);
  const numTrainTimesteps = integer(values, 'num_train_timesteps', 2, 10_000);
  const clipSampleRange = number(values, 'clip_sample_range', 0, Number.MAX_VALUE);
  const config: SchedulerConfig = {
    numTrainTimesteps,
    // In float32, a value closer to 1 than the lower bound is 1.
    betaStart: number(values, 'beta_start', 1e-7, 0.999),
    betaEnd: number(values, 'beta_end', 1e-7, 0.999),
    betaSchedule: choice(values, 'beta_schedule', betaSchedules),
    trainedBetas: trainedBetas(values, numTrainTimesteps),
    rescaleBetasZeroSnr: flag(values, 'rescale_betas_zero_snr'),
    predictionType: choice(values, 'prediction_type', predictionTypes),
    timestepSpacing: choice(values, 'timestep_spacing', timestepSpacings),
    stepsOffset: integer(values, 'steps_offset', 0, numTrainTimesteps - 1),
    setAlphaToOne: flag(values, 'set_alpha_to_one'),
    clipRange: flag(values, 'clip_sample') ? clipSampleRange : Infinity,
    thresholding: thresholding(values),
    varianceType: text(values, 'variance_type'),
    skipPrkSteps: flag(values, 'skip_prk_steps'),
    useKarrasSigmas: flag(values, 'use_karras_sigmas'),
    useExponentialSigmas: flag(values, 'use_exponential_sigmas'),
    useBetaSigmas: flag(values, 'use_beta_sigmas'),
    useLuLambdas: flag(values, 'use_lu_lambdas'),
    sigmaMin: sigma(values, 'sigma_min'),
    sigmaMax: sigma(values, 'sigma_max'),
    finalSigmasType: choice(values, 'final_sigmas_type', finalSigmasTypes),
    algorithmType: text(values, 'algorithm_type'),
    solverType: text(values, 'solver_type'),
    solverOrder: integer(values, 'solver_order', 1, 3),
    lowerOrderFinal: flag(values, 'lower_order_final'),
    eulerAtFinal: flag(values, 'euler_at_final'),
    lambdaMinClipped: number(values, 'lambda_min_clipped', -Infinity, Number.MAX_VALUE),
    predictX0: flag(values, 'predict_x0'),
    disableCorrector: steps(values, 'disable_corrector'),
    originalInferenceSteps: integer(values, 'original_inference_steps', 1, numTrainTimesteps),
    timestepScaling: number(values, 'timestep_scaling', Number.MIN_VALUE, Number.MAX_VALUE),
    noiseSamplerSeed: optionalInteger(values, 'noise_sampler_seed', 0, Number.MAX_SAFE_INTEGER),
    sigmaData: number(values, 'sigma_data', 1e-6, 1e6),
    rho: number(values, 'rho', 1e-3, 1e3),
    sigmaSchedule: choice(values, 'sigma_schedule', sigmaSchedules),
  };
  assertConsistent(config);
  return config;
}

function assertConsistent(config: SchedulerConfig): void {
  const { useKarrasSigmas, useExponentialSigmas, useBetaSigmas, sigmaMin, sigmaMax } = config;
  if ([useKarrasSigmas, useExponentialSigmas, useBetaSigmas].filter(Boolean).length > 1)
    throw new SchedulerError('Only one of use_karras_sigmas, use_exponential_sigmas and use_beta_sigmas can be true.');
  if (sigmaMin !== undefined && sigmaMax !== undefined && sigmaMin >= sigmaMax)
    throw new SchedulerError(`sigma_min (${sigmaMin}) must be less than sigma_max (${sigmaMax}).`);
}

function thresholding(values: SchedulerJson): Thresholding | undefined {
  const ratio = number(values, 'dynamic_thresholding_ratio', 0, 1);
  const max = number(values, 'sample_max_value', Number.MIN_VALUE, Number.MAX_VALUE);
  return flag(values, 'thresholding') ? { ratio, max } : undefined;
}

function withDefaults(json: SchedulerJson, parameters: SchedulerParameters): SchedulerJson {
  const values: Record<string, unknown> = { ...absent, ...common, ...parameters };
  for (const key of Object.keys({ ...common, ...parameters }))
    if (Object.hasOwn(json, key)) values[key] = json[key] ?? values[key];
  return values;
}

function refuseUnsupported(values: SchedulerJson): void {
  for (const key of ['use_flow_sigmas', 'use_dynamic_shifting'])
    if (flag(values, key)) throw new SchedulerError(`${key} is not supported.`);
  for (const key of ['solver_p', 'shift_terminal'])
    if (values[key] !== null) throw new SchedulerError(`${key} is not supported.`);
  choice(values, 'interpolation_type', ['linear']);
  choice(values, 'timestep_type', ['discrete']);
}
