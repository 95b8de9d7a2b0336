/** A value of a scheduler that is unknown or not accepted; the message is one plain sentence. */
export class SchedulerError extends Error {
  override name = 'SchedulerError';
}

/** The content of a `scheduler_config.json`. */
export type SchedulerJson = Readonly<Record<string, unknown>>;

/** How the value of a key is checked; some bounds depend on the number of training timesteps. */
type Reader<T> = (value: unknown, key: string, trainTimesteps: number) => T;

const flag: Reader<boolean> = (value, key) => (typeof value === 'boolean' ? value : wrong(key, value, 'true or false'));

const text: Reader<string> = (value, key) => (typeof value === 'string' ? value : wrong(key, value, 'a string'));

const number = (min: number, max: number): Reader<number> => {
  return (value, key) =>
    typeof value === 'number' && value >= min && value <= max
      ? value
      : wrong(key, value, `a number from ${min} to ${max}`);
};

const integer = (min: number, max: (trainTimesteps: number) => number): Reader<number> => {
  return (value, key, trainTimesteps) =>
    Number.isInteger(value) && (value as number) >= min && (value as number) <= max(trainTimesteps)
      ? (value as number)
      : wrong(key, value, `an integer from ${min} to ${max(trainTimesteps)}`);
};

const choice = <T extends string>(...accepted: T[]): Reader<T> => {
  return (value, key) =>
    accepted.includes(value as T) ? (value as T) : wrong(key, value, accepted.map((name) => `"${name}"`).join(' or '));
};

const orNull = <T>(reader: Reader<T>): Reader<T | undefined> => {
  return (value, key, trainTimesteps) => (value === null ? undefined : reader(value, key, trainTimesteps));
};

const betas: Reader<Float32Array> = (value, key, count) => {
  const isBeta = (beta: unknown) => typeof beta === 'number' && beta >= 1e-7 && beta <= 0.999;
  if (Array.isArray(value) && value.length === count && value.every(isBeta))
    return Float32Array.from(value as number[]);
  return wrong(key, value, `a list of ${count} numbers from 1e-7 to 0.999`);
};

const integers: Reader<readonly number[]> = (value, key) =>
  Array.isArray(value) && value.every(Number.isInteger) ? (value as number[]) : wrong(key, value, 'a list of integers');

/** A way of drawing that we do not have, and the value that does not ask for it. */
const unsupported = (without: false | null): Reader<void> => {
  return (value, key, trainTimesteps) => {
    if (without === null ? value !== null : flag(value, key, trainTimesteps))
      throw new SchedulerError(`${key} is not supported.`);
  };
};

function wrong(key: string, value: unknown, accepted: string): never {
  const shown = JSON.stringify(value)?.slice(0, 60) ?? typeof value;
  throw new SchedulerError(`${key} must be ${accepted}, but is ${shown}.`);
}

type Table = Record<string, [unknown, Reader<unknown>]>;

/** The parameters of every diffusers class: the default, and what is accepted. */
const common = { num_train_timesteps: [1000, integer(2, () => 10_000)] } satisfies Table;

/** Those of every class but for flow matching. */
const ofBetas = {
  // In float32, a value closer to 1 than the lower bound is 1.
  beta_start: [0.0001, number(1e-7, 0.999)],
  beta_end: [0.02, number(1e-7, 0.999)],
  beta_schedule: ['linear', choice('linear', 'scaled_linear', 'squaredcos_cap_v2')],
  trained_betas: [null, orNull(betas)],
  prediction_type: ['epsilon', choice('epsilon', 'sample', 'v_prediction')],
  timestep_spacing: ['linspace', choice('leading', 'trailing', 'linspace')],
  steps_offset: [0, integer(0, (trainTimesteps) => trainTimesteps - 1)],
} satisfies Table;

/** The parameters of some classes only: the value that means absence, and what is accepted. */
const own = {
  use_flow_sigmas: [false, flag],
  flow_shift: [1, number(1e-3, 1e3)],
  shift: [1, number(1e-3, 1e3)],
  use_dynamic_shifting: [false, flag],
  base_shift: [0.5, number(0, 100)],
  max_shift: [1.15, number(0, 100)],
  base_image_seq_len: [256, integer(1, () => 1e6)],
  max_image_seq_len: [4096, integer(1, () => 1e6)],
  time_shift_type: ['exponential', choice('exponential', 'linear')],
  shift_terminal: [null, orNull(number(0, 0.999))],
  invert_sigmas: [false, unsupported(false)],
  stochastic_sampling: [false, unsupported(false)],
  solver_p: [null, unsupported(null)],
  interpolation_type: ['linear', choice('linear')],
  timestep_type: ['discrete', choice('discrete')],
  rescale_betas_zero_snr: [false, flag],
  set_alpha_to_one: [true, flag],
  clip_sample: [false, flag],
  clip_sample_range: [1, number(0, Number.MAX_VALUE)],
  thresholding: [false, flag],
  dynamic_thresholding_ratio: [0.995, number(0, 1)],
  sample_max_value: [1, number(Number.MIN_VALUE, Number.MAX_VALUE)],
  variance_type: ['', text],
  skip_prk_steps: [false, flag],
  use_karras_sigmas: [false, flag],
  use_exponential_sigmas: [false, flag],
  use_beta_sigmas: [false, flag],
  use_lu_lambdas: [false, flag],
  sigma_min: [null, orNull(number(1e-6, 1e6))],
  sigma_max: [null, orNull(number(1e-6, 1e6))],
  final_sigmas_type: ['zero', choice('zero', 'sigma_min')],
  algorithm_type: ['', text],
  solver_type: ['', text],
  solver_order: [2, integer(1, () => 3)],
  lower_order_final: [true, flag],
  euler_at_final: [false, flag],
  lambda_min_clipped: [-Infinity, number(-Infinity, Number.MAX_VALUE)],
  predict_x0: [true, flag],
  disable_corrector: [[], integers],
  original_inference_steps: [50, integer(1, (trainTimesteps) => trainTimesteps)],
  timestep_scaling: [10, number(Number.MIN_VALUE, Number.MAX_VALUE)],
  /** Seed of a noise sampler of its own; the generator's seed if not given. */
  noise_sampler_seed: [null, orNull(integer(0, () => Number.MAX_SAFE_INTEGER))],
  sigma_data: [0.5, number(1e-6, 1e6)],
  rho: [7, number(1e-3, 1e3)],
  sigma_schedule: ['karras', choice('karras', 'exponential')],
} satisfies Table;

const all = { ...common, ...ofBetas, ...own };
type Key = keyof typeof all;

type CamelCase<S extends string> = S extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : S;

/** diffusers' configuration of a scheduler, checked and completed with the defaults of the class. */
export type SchedulerConfig = { [K in Key as CamelCase<K>]: ReturnType<(typeof all)[K][1]> };

export type PredictionType = SchedulerConfig['predictionType'];

/** The parameters of one class and their defaults, beyond the common ones, from its Python signature. */
export type SchedulerParameters = Partial<Record<Key, unknown>>;

/** Parameters of the classes that can limit the predicted picture by its own values. */
export const dynamicThresholding: SchedulerParameters = {
  thresholding: false,
  dynamic_thresholding_ratio: 0.995,
  sample_max_value: 1,
};

/** Parameters of the classes that can space their noise levels by a rule of their own. */
export const sigmaSpacing: SchedulerParameters = {
  use_karras_sigmas: false,
  use_exponential_sigmas: false,
  use_beta_sigmas: false,
};

/** Whether a configuration is of a model of flow matching; the noise of all others follows from betas. */
export function isOfFlow(json: SchedulerJson): boolean {
  const { _class_name: name, use_flow_sigmas: hasSigmas, prediction_type: prediction } = json;
  return hasSigmas === true || prediction === 'flow_prediction' || String(name).startsWith('FlowMatch');
}

/**
 * Translates a `scheduler_config.json` once, as diffusers reads it: keys that the class does not have are ignored, keys
 * that are absent or null get its defaults.
 * @throws SchedulerError for a wrong or unsupported value.
 */
export function readSchedulerConfig(json: SchedulerJson, parameters: SchedulerParameters): SchedulerConfig {
  const isFlow = isOfFlow(json);
  if (isFlow && !('shift' in parameters)) {
    if (!('use_flow_sigmas' in parameters)) throw new SchedulerError('The scheduler is not for flow matching.');
    if (json.use_flow_sigmas !== true || json.prediction_type !== 'flow_prediction')
      throw new SchedulerError('use_flow_sigmas and the prediction_type "flow_prediction" need one another.');
  }
  const values: Record<string, unknown> = {};
  for (const [key, [absence, reader]] of Object.entries<[unknown, Reader<unknown>]>(all)) {
    const known = key in common || (key in ofBetas && !isFlow) || key in parameters;
    const value = (known && Object.hasOwn(json, key) ? json[key] : undefined) ?? parameters[key as Key] ?? absence;
    // What the class does not have is not bounded by what the file says.
    values[camelCase(key)] = reader(value, key, known ? (values.numTrainTimesteps as number) : Infinity);
  }
  const config = values as SchedulerConfig;
  const { useKarrasSigmas, useExponentialSigmas, useBetaSigmas, sigmaMin, sigmaMax } = config;
  if ([useKarrasSigmas, useExponentialSigmas, useBetaSigmas].filter(Boolean).length > 1)
    throw new SchedulerError('Only one of use_karras_sigmas, use_exponential_sigmas and use_beta_sigmas can be true.');
  if (!isFlow && (config.useDynamicShifting || config.shiftTerminal !== undefined))
    throw new SchedulerError('use_dynamic_shifting and shift_terminal need use_flow_sigmas.');
  if (sigmaMin !== undefined && sigmaMax !== undefined && sigmaMin >= sigmaMax)
    throw new SchedulerError(`sigma_min (${sigmaMin}) must be less than sigma_max (${sigmaMax}).`);
  return config;
}

function camelCase(key: string): string {
  return key.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
}

/**
 * Parses the text of a `scheduler_config.json`. Python writes -Infinity and NaN into such files
 * (`lambda_min_clipped`), which are not JSON.
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
