import { OutOfMemoryError } from '@app/diffusion';
import type { Batch } from './batch';
import type { CallTimes } from './call-times';
import { type EngineTask, type RunningTask, rowsTogether } from './running-task';
import type { Models } from './models';

/** Times that a task may run out of memory until it has to be alone. Two could release each other's models for ever. */
const maxTimesOutOfMemory = 3;

/**
 * Remedy for work that failed.
 * - `retry`: memory was freed, so the same work is done again.
 * - `restartAlone`: the task is restarted with nothing beside it.
 * - `fail`: the task fails.
 */
export type Remedy = 'retry' | 'restartAlone' | 'fail';

/** A task that waits or runs, as far as its lack of memory goes. */
export interface MemoryNeeder {
  task: EngineTask;
  timesOutOfMemory: number;
}

/** What is to be done about a task whose work failed. */
export interface Verdict {
  running: RunningTask;
  remedy: Remedy;
}

/**
 * Remedies for work that failed:
 * - A call of several pictures that lacks memory is made again with half of its rows.
 * - After another error in a call of several tasks, each of them gets a call of its own, so that only the task at fault
 *   fails.
 * - Other work that lacks memory is done again after models that are not in use are released. If there are none, or
 *   memory is lacking for the third time, its task is restarted alone. It fails if it was alone already, or if no model
 *   was released and no other task runs.
 * - A task that is left in the middle of a step (`isSpoilt`) is restarted alone. It fails if it was alone already, and
 *   neither were models released nor rows halved.
 * - Anything else fails.
 */
export class Remedies {
  constructor(
    private readonly models: Models,
    private readonly times: CallTimes,
  ) {}

  /** @param hasOthers whether more tasks run than those of this call */
  async afterFailedCall(batch: Batch, error: unknown, hasOthers: boolean): Promise<Verdict[]> {
    const [{ running: first }] = batch;
    const pictures = batch.flatMap((part) => part.pictures);
    const isOutOfMemory = error instanceof OutOfMemoryError;
    const isHalved = isOutOfMemory && this.times.halve(first.callKey, rowsTogether(pictures), pictures[0].rows);
    const spoilt = batch.filter(({ running }) => running.pictures.some(({ trajectory }) => trajectory.isSpoilt));
    if (spoilt.length > 0) {
      const hasMadeRoom = isHalved || (isOutOfMemory && (await this.models.releaseIdle()));
      return spoilt.map(({ running }) => ({
        running,
        remedy: hasMadeRoom || !running.task.alone ? 'restartAlone' : 'fail',
      }));
    }
    if (isHalved) return [];
    if (batch.length === 1) return [{ running: first, remedy: await this.afterFailedWork(error, first, hasOthers) }];
    for (const { running } of batch) running.isSuspect = true;
    return [];
  }

  /** @param hasOthers whether other tasks run */
  async afterFailedWork(error: unknown, needer: MemoryNeeder, hasOthers: boolean): Promise<Remedy> {
    if (!(error instanceof OutOfMemoryError)) return 'fail';
    const hasMadeRoom = await this.models.releaseIdle();
    if (++needer.timesOutOfMemory < maxTimesOutOfMemory && hasMadeRoom) return 'retry';
    return (hasMadeRoom || hasOthers) && !needer.task.alone ? 'restartAlone' : 'fail';
  }
}
