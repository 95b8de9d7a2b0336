/** Names of the sampling methods in the API. */
export const schedulerNames = [
  'ddim',
  'ddpm',
  'pndm',
  'lms',
  'euler',
  'euler_a',
  'heun',
  'dpmpp_2m',
  'dpmpp_2m_karras',
  'dpmpp_2m_sde_karras',
  'unipc',
  'lcm',
  'deis',
  'dpmpp_2s',
  'dpmpp_sde',
  'dpm2',
  'dpm2_a',
  'tcd',
] as const;

/** diffusers' classes, as `GET /v1/models` shows them, by our name. Their own settings may be those of a variant. */
const classes: Partial<Record<SchedulerName, readonly string[]>> = {
  ddim: ['DDIM'],
  ddpm: ['DDPM'],
  pndm: ['PNDM'],
  lms: ['LMSDiscrete'],
  euler: ['EulerDiscrete', 'FlowMatchEulerDiscrete'],
  euler_a: ['EulerAncestralDiscrete'],
  heun: ['HeunDiscrete', 'FlowMatchHeunDiscrete'],
  dpmpp_2m: ['DPMSolverMultistep'],
  unipc: ['UniPCMultistep'],
  lcm: ['LCM'],
  deis: ['DEISMultistep'],
  dpmpp_2s: ['DPMSolverSinglestep'],
  dpmpp_sde: ['DPMSolverSDE'],
  dpm2: ['KDPM2Discrete'],
  dpm2_a: ['KDPM2AncestralDiscrete'],
  tcd: ['TCD'],
};

/** Our name of a scheduler that is called by diffusers' name of its class. */
export const schedulerOfClass = (name: string): SchedulerName | undefined =>
  schedulerNames.find((each) => classes[each]?.includes(name.replace(/Scheduler$/, '')));

export type SchedulerName = (typeof schedulerNames)[number];
