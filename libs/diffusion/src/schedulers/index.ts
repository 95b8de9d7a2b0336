import { DdimScheduler } from './ddim-scheduler';
import { DdpmScheduler } from './ddpm-scheduler';
import { DeisMultistepScheduler } from './deis-multistep-scheduler';
import { DpmSolverMultistepScheduler } from './dpm-solver-multistep-scheduler';
import { DpmSolverSdeScheduler } from './dpm-solver-sde-scheduler';
import { DpmSolverSinglestepScheduler } from './dpm-solver-singlestep-scheduler';
import { EdmEulerScheduler } from './edm-euler-scheduler';
import { EulerAncestralDiscreteScheduler } from './euler-ancestral-discrete-scheduler';
import { EulerDiscreteScheduler } from './euler-discrete-scheduler';
import { FlowMatchEulerDiscreteScheduler } from './flow-match-euler-discrete-scheduler';
import { FlowMatchHeunDiscreteScheduler } from './flow-match-heun-discrete-scheduler';
import { assertShifts } from './flow-sigmas';
import { HeunDiscreteScheduler } from './heun-discrete-scheduler';
import { Kdpm2AncestralDiscreteScheduler, Kdpm2DiscreteScheduler } from './kdpm2-discrete-scheduler';
import { LcmScheduler } from './lcm-scheduler';
import { LmsDiscreteScheduler } from './lms-discrete-scheduler';
import { PndmScheduler } from './pndm-scheduler';
import type { Scheduler } from './scheduler';
import {
  isOfFlow,
  readSchedulerConfig,
  type SchedulerConfig,
  SchedulerError,
  type SchedulerJson,
  type SchedulerParameters,
} from './scheduler-config';
import { TcdScheduler } from './tcd-scheduler';
import { UniPcMultistepScheduler } from './uni-pc-multistep-scheduler';

interface SchedulerClass {
  readonly parameters: SchedulerParameters;
  new (config: SchedulerConfig): Scheduler;
}

/** By the `_class_name` of a `scheduler_config.json`. */
const classes: Readonly<Record<string, SchedulerClass>> = {
  DDIMScheduler: DdimScheduler,
  DDPMScheduler: DdpmScheduler,
  PNDMScheduler: PndmScheduler,
  LMSDiscreteScheduler: LmsDiscreteScheduler,
  EulerDiscreteScheduler: EulerDiscreteScheduler,
  EulerAncestralDiscreteScheduler: EulerAncestralDiscreteScheduler,
  HeunDiscreteScheduler: HeunDiscreteScheduler,
  DPMSolverMultistepScheduler: DpmSolverMultistepScheduler,
  UniPCMultistepScheduler: UniPcMultistepScheduler,
  DPMSolverSinglestepScheduler: DpmSolverSinglestepScheduler,
  DPMSolverSDEScheduler: DpmSolverSdeScheduler,
  KDPM2DiscreteScheduler: Kdpm2DiscreteScheduler,
  KDPM2AncestralDiscreteScheduler: Kdpm2AncestralDiscreteScheduler,
  DEISMultistepScheduler: DeisMultistepScheduler,
  EDMEulerScheduler: EdmEulerScheduler,
  LCMScheduler: LcmScheduler,
  TCDScheduler: TcdScheduler,
  FlowMatchEulerDiscreteScheduler,
  FlowMatchHeunDiscreteScheduler,
};

/** The properties that the names of the DPM solvers imply, whatever the model's own configuration says. */
const dpmpp2m = {
  _class_name: 'DPMSolverMultistepScheduler',
  algorithm_type: 'dpmsolver++',
  solver_order: 2,
  use_karras_sigmas: false,
  use_exponential_sigmas: false,
  use_beta_sigmas: false,
  use_lu_lambdas: false,
};

/** The schedulers that a request may name: what the name sets in the configuration of a model with betas. */
const named = {
  ddim: { _class_name: 'DDIMScheduler' },
  ddpm: { _class_name: 'DDPMScheduler' },
  pndm: { _class_name: 'PNDMScheduler' },
  lms: { _class_name: 'LMSDiscreteScheduler' },
  euler: { _class_name: 'EulerDiscreteScheduler' },
  euler_a: { _class_name: 'EulerAncestralDiscreteScheduler' },
  heun: { _class_name: 'HeunDiscreteScheduler' },
  dpmpp_2m: dpmpp2m,
  dpmpp_2m_karras: { ...dpmpp2m, use_karras_sigmas: true },
  dpmpp_2m_sde_karras: { ...dpmpp2m, use_karras_sigmas: true, algorithm_type: 'sde-dpmsolver++' },
  unipc: { _class_name: 'UniPCMultistepScheduler' },
  lcm: { _class_name: 'LCMScheduler' },
  deis: { _class_name: 'DEISMultistepScheduler', algorithm_type: 'deis', solver_order: 2 },
  dpmpp_2s: { _class_name: 'DPMSolverSinglestepScheduler', algorithm_type: 'dpmsolver++', solver_order: 2 },
  dpmpp_sde: { _class_name: 'DPMSolverSDEScheduler' },
  dpm2: { _class_name: 'KDPM2DiscreteScheduler' },
  dpm2_a: { _class_name: 'KDPM2AncestralDiscreteScheduler' },
  tcd: { _class_name: 'TCDScheduler' },
} satisfies Record<string, SchedulerJson>;

export type SchedulerName = keyof typeof named;

export const schedulerNames = Object.keys(named) as SchedulerName[];

const flowSigmas = {
  use_flow_sigmas: true,
  prediction_type: 'flow_prediction',
  use_karras_sigmas: false,
  use_exponential_sigmas: false,
  use_beta_sigmas: false,
};

/**
 * The same for a model of flow matching. DEIS is none of them: diffusers' repeats the last of its flow sigmas, so that
 * it ends with noise in the picture.
 */
const namedOfFlow: Readonly<Partial<Record<SchedulerName, SchedulerJson>>> = {
  euler: { _class_name: 'FlowMatchEulerDiscreteScheduler' },
  heun: { _class_name: 'FlowMatchHeunDiscreteScheduler' },
  dpmpp_2m: { ...dpmpp2m, ...flowSigmas },
  unipc: { ...named.unipc, ...flowSigmas },
  dpmpp_2s: { ...named.dpmpp_2s, ...flowSigmas },
};

const namedFor = (config: SchedulerJson) => (isOfFlow(config) ? namedOfFlow : named);

/** Names of the schedulers that are for a model's kind of noise. */
export function schedulerNamesFor(config: SchedulerJson): SchedulerName[] {
  return Object.keys(namedFor(config)) as SchedulerName[];
}

/**
 * A scheduler for one image of a model. With a name it is that scheduler with the model's own training
 * parameters (betas, prediction type, offsets, shift), as diffusers' `X.from_config(pipe.scheduler.config)`; without a
 * name it is the model's own.
 * @throws SchedulerError when the class is unknown or for another kind of noise, or a value is wrong.
 */
export function createScheduler(name: SchedulerName | undefined, config: SchedulerJson): Scheduler {
  const json = name === undefined ? config : { ...config, ...preset(name, config) };
  const Class = schedulerClass(json);
  const own = readSchedulerConfig(json, Class.parameters);
  if (own.useDynamicShifting) assertShifts(own);
  return new Class(own);
}

/** The request name of this configuration's scheduler; undefined if it has none. */
export function schedulerNameOf(config: SchedulerJson): SchedulerName | undefined {
  const { _class_name: className } = config;
  if (typeof className !== 'string' || !Object.hasOwn(classes, className)) return undefined;
  const parameters: Readonly<Record<string, unknown>> = classes[className].parameters;
  return schedulerNamesFor(config).find((name) =>
    Object.entries(namedFor(config)[name]!).every(([key, value]) => (config[key] ?? parameters[key]) === value),
  );
}

function preset(name: SchedulerName, config: SchedulerJson): SchedulerJson {
  const own = namedFor(config);
  if (!Object.hasOwn(own, name)) {
    const kind = isOfFlow(config) ? ' for flow matching' : '';
    throw new SchedulerError(`There is no scheduler "${name}"${kind}; there are ${Object.keys(own).join(', ')}.`);
  }
  // Two classes call one thing by two names.
  const shift = config.use_flow_sigmas === true ? config.flow_shift : config.shift;
  return { ...own[name], shift, flow_shift: shift };
}

function schedulerClass({ _class_name: name }: SchedulerJson): SchedulerClass {
  if (typeof name !== 'string') throw new SchedulerError('The scheduler configuration names no class in _class_name.');
  if (!Object.hasOwn(classes, name))
    throw new SchedulerError(`The scheduler class "${name.slice(0, 60)}" is not supported.`);
  return classes[name];
}
