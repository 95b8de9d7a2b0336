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

export type SchedulerName = (typeof schedulerNames)[number];
