/**
 * How many pieces of work an engine on the processor does side by side. Two calls at a time, each with half of the
 * threads, are done sooner than the same two one after the other, each with all threads.
 */
export const laneCount = 2;

/** The number of a lane that does a piece of work. Where there is none, all threads of the device do it together. */
export type Lane = number;
