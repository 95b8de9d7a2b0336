import type { Device } from '../model/device';

/**
 * Whether calls of a U-Net have 1, 2, 4, 8 … rows only, the last ones unused. A GPU looks for the fastest kernels anew
 * for each number of rows that it has not seen, which takes longer than the unused rows; on the CPU each row takes its
 * time.
 */
export const hasCallsInPowersOfTwo = (device: Device): boolean => device !== 'cpu';

/** The least power of two that is no less than so many rows. */
export const powerOfTwoFrom = (rows: number): number => 2 ** Math.ceil(Math.log2(rows));

/** The largest power of two that is no more than so many rows, at least one. */
export const powerOfTwoUpTo = (rows: number): number => 2 ** Math.floor(Math.log2(rows));
