import type { LoadOptions } from '@app/diffusion';

/** One thread each: the cores have other spec files to run, and dividing the work costs time. */
export const cpu: LoadOptions = { device: 'cpu', intraOpNumThreads: 1, spinUs: 0 };
