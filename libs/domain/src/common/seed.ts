import { limits } from './limits';

/** Seed of the i-th picture of a task: seeds wrap around after the largest. */
export const seedOf = (seed: number, index: number): number => (seed + index) % (limits.seed + 1);
