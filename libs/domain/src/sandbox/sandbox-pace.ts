import { limits } from '../common/limits';

/** How long a sandbox task that is to take `delayMs` waits in the queue: to its first step, however many it has. */
export function sandboxWaitMs(delayMs: number): number {
  return Math.floor(delayMs / limits.steps.max);
}
