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
] as const;
