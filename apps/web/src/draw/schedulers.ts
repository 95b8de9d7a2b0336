import type { Scheduler } from './draft';

/** Every name of the contract: a missing or an unknown one does not compile. */
export const schedulers = Object.keys({
  euler: 0,
  euler_a: 0,
  dpmpp_2m: 0,
  dpmpp_2m_karras: 0,
  dpmpp_2m_sde_karras: 0,
  dpmpp_2s: 0,
  dpmpp_sde: 0,
  dpm2: 0,
  dpm2_a: 0,
  ddim: 0,
  ddpm: 0,
  pndm: 0,
  lms: 0,
  heun: 0,
  unipc: 0,
  deis: 0,
  lcm: 0,
  tcd: 0,
} satisfies Record<Scheduler, 0>) as Scheduler[];
