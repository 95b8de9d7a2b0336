import { SchedulerError } from './scheduler';

/** The content of a `scheduler_config.json`. */
export type SchedulerJson = Readonly<Record<string, unknown>>;

const predictionTypes = ['epsilon', 'sample', 'v_prediction'] as const;
const timestepSpacings = ['leading', 'trailing', 'linspace'] as const;
const betaSchedules = ['linear', 'scaled_linear', 'squaredcos_cap_v2'] as const;
const finalSigmasTypes = ['zero', 'sigma_min'] as const;

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
  varianceType: string;
  skipPrkSteps: boolean;
  useKarrasSigmas: boolean;
  useExponentialSigmas: boolean;
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

/** Parameters of some classes only, with the value that means absence. */
const absent = {
  rescale_betas_zero_snr: false,
  set_alpha_to_one: true,
  clip_sample: false,
  clip_sample_range: 1,
  thresholding: false,
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
} satisfies SchedulerJson;

/** The parameters of one class and their defaults, beyond the common ones, from its Python signature. */
export type SchedulerParameters = Partial<Record<keyof typeof common | keyof typeof absent, unknown>>;

/**
 * Translates a `scheduler_config.json` once, as diffusers reads it: keys that the class does not have are ignored, keys that are
 * absent or null get its defaults.
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
    varianceType: text(values, 'variance_type'),
    skipPrkSteps: flag(values, 'skip_prk_steps'),
    useKarrasSigmas: flag(values, 'use_karras_sigmas'),
    useExponentialSigmas: flag(values, 'use_exponential_sigmas'),
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
  };
  if (config.useKarrasSigmas && config.useExponentialSigmas)
    throw new SchedulerError('Only one of use_karras_sigmas and use_exponential_sigmas can be true.');
  if (config.sigmaMin !== undefined && config.sigmaMax !== undefined && config.sigmaMin >= config.sigmaMax)
    throw new SchedulerError(`sigma_min (${config.sigmaMin}) must be less than sigma_max (${config.sigmaMax}).`);
  return config;
}

function withDefaults(json: SchedulerJson, parameters: SchedulerParameters): SchedulerJson {
  const values: Record<string, unknown> = { ...absent, ...common, ...parameters };
  for (const key of Object.keys({ ...common, ...parameters }))
    if (Object.hasOwn(json, key)) values[key] = json[key] ?? values[key];
  return values;
}

function refuseUnsupported(values: SchedulerJson): void {
  for (const key of ['thresholding', 'use_beta_sigmas', 'use_lu_lambdas', 'use_flow_sigmas', 'use_dynamic_shifting'])
    if (flag(values, key)) throw new SchedulerError(`${key} is not supported.`);
  for (const key of ['solver_p', 'shift_terminal'])
    if (values[key] !== null) throw new SchedulerError(`${key} is not supported.`);
  choice(values, 'interpolation_type', ['linear']);
  choice(values, 'timestep_type', ['discrete']);
}

/**
 * Parses the text of a `scheduler_config.json`. Python writes -Infinity and NaN into such files (`lambda_min_clipped`), which are
 * not JSON.
 * @throws SchedulerError when the text is not a JSON object.
 */
export function parseSchedulerJson(source: string): SchedulerJson {
  const literals = /"(?:[^"\\]|\\.)*"|-?\bInfinity\b|\bNaN\b/g;
  const asJson: Record<string, string> = { Infinity: '1e999', '-Infinity': '-1e999', NaN: 'null' };
  let json: unknown;
  try {
    json = JSON.parse(source.replace(literals, (match) => asJson[match] ?? match));
  } catch {
    throw new SchedulerError('The scheduler configuration is not valid JSON.');
  }
  if (typeof json !== 'object' || json === null || Array.isArray(json))
    throw new SchedulerError('The scheduler configuration is not a JSON object.');
  return json as SchedulerJson;
}

function wrong(key: string, value: unknown, accepted: string): never {
  const shown = JSON.stringify(value)?.slice(0, 60) ?? typeof value;
  throw new SchedulerError(`${key} must be ${accepted}, but is ${shown}.`);
}

function number(values: SchedulerJson, key: string, min: number, max: number): number {
  const value = values[key];
  if (typeof value === 'number' && value >= min && value <= max) return value;
  return wrong(key, value, `a number from ${min} to ${max}`);
}

function integer(values: SchedulerJson, key: string, min: number, max: number): number {
  const value = values[key];
  if (Number.isInteger(value) && (value as number) >= min && (value as number) <= max) return value as number;
  return wrong(key, value, `an integer from ${min} to ${max}`);
}

function flag(values: SchedulerJson, key: string): boolean {
  const value = values[key];
  return typeof value === 'boolean' ? value : wrong(key, value, 'true or false');
}

function text(values: SchedulerJson, key: string): string {
  const value = values[key];
  return typeof value === 'string' ? value : wrong(key, value, 'a string');
}

function choice<T extends string>(values: SchedulerJson, key: string, accepted: readonly T[]): T {
  const value = values[key] as T;
  return accepted.includes(value) ? value : wrong(key, value, accepted.map((name) => `"${name}"`).join(' or '));
}

function sigma(values: SchedulerJson, key: string): number | undefined {
  return values[key] === null ? undefined : number(values, key, 1e-6, 1e6);
}

function steps(values: SchedulerJson, key: string): readonly number[] {
  const value = values[key];
  if (Array.isArray(value) && value.every((step) => Number.isInteger(step))) return value as number[];
  return wrong(key, value, 'a list of integers');
}

function trainedBetas({ trained_betas: value }: SchedulerJson, count: number): Float32Array | undefined {
  if (value === null) return undefined;
  const isBeta = (beta: unknown) => typeof beta === 'number' && beta >= 1e-7 && beta <= 0.999;
  if (Array.isArray(value) && value.length === count && value.every(isBeta))
    return Float32Array.from(value as number[]);
  return wrong('trained_betas', value, `a list of ${count} numbers from 1e-7 to 0.999`);
}
