import type { LoadOptions } from '@app/diffusion';

/** How tests load models: on two threads, as a small machine does, that sleep while they wait, so that others can work. */
export const cpu: LoadOptions = { device: 'cpu', intraOpNumThreads: 2, allowSpinning: false };
