/** Sampling methods that the API knows by name. */
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
] as const;
