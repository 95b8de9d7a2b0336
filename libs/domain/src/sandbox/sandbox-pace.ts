import { limits } from '../common/limits';

/**
 * How long a sandbox task with a delay of `delayMs` waits in the queue before its first step,
 * whatever the number of steps.
 */
export function sandboxWaitMs(delayMs: number): number {
  return Math.floor(delayMs / limits.steps.max);
}
