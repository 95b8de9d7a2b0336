import type { LoadOptions } from '@app/diffusion';

/** Load options of tests: two threads, as on a small machine, which sleep while they wait so that others can work. */
export const cpu: LoadOptions = { device: 'cpu', intraOpNumThreads: 2, allowSpinning: false };
