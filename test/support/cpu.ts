import type { LoadOptions } from '@app/diffusion';

/**
 * Load options of tests: one thread each, because the cores have other spec files to run, and threads cost time to
 * divide the work.
 */
export const cpu: LoadOptions = { device: 'cpu', intraOpNumThreads: 1, spinUs: 0 };
