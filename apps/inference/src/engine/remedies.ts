import { OutOfMemoryError } from '@app/diffusion';
import type { Batch } from './batch';
import type { CallTimes } from './call-times';
import { type Drawing, rowsOf, type Task } from './drawing';
import type { Models } from './models';

/** Times that a task may run out of memory until it has to be alone. Two could release each other's models for ever. */
const maxTimesOutOfMemory = 3;

/**
 * Remedy for a lack of memory.
 * - `retry`: memory was freed, so the same work is done again.
 * - `restartAlone`: the task is restarted with nothing beside it.
 * - `fail`: the task fails.
 */
export type Remedy = 'retry' | 'restartAlone' | 'fail';

/** Work that may lack memory: a task that waits, or a drawing. */
export interface Attempt {
  task: Task;
  /** Times that it has run out of memory. */
  timesOutOfMemory: number;
}

/**
 * Remedies for work that failed:
 * - A call of several pictures that lacks memory is made again with half of its rows.
 * - After another error in a call of several drawings, each of them gets a call of its own, so that only the drawing at
 *   fault fails.
 * - Other work that lacks memory is done again after models that are not in use are released. If there are none, or
 *   memory is lacking for the third time, its task is restarted alone. It fails if it was alone already, or if no model
 *   was released and there is no other drawing.
 * - A drawing that is left in the middle of a step (`isSpoilt`) is restarted alone. It fails if it was alone already,
 *   and neither were models released nor rows halved.
 * - Anything else fails.
 */
export class Remedies {
  /**
   * @param drawings all drawings of the device
   * @param restartAlone restarts a drawing's task with nothing beside it
   * @param end ends a drawing with an error
   */
  constructor(
    private readonly models: Models,
    private readonly times: CallTimes,
    private readonly drawings: readonly Drawing[],
    private readonly restartAlone: (drawing: Drawing) => void,
    private readonly end: (drawing: Drawing, error: unknown) => void,
  ) {}

  async afterFailedCall(batch: Batch, error: unknown): Promise<void> {
    const [{ drawing: first }] = batch;
    const pictures = batch.flatMap((part) => part.pictures);
    const isOutOfMemory = error instanceof OutOfMemoryError;
    const isHalved = isOutOfMemory && this.times.halve(first.callKey, rowsOf(pictures), pictures[0].rows);
    const spoilt = batch.filter(({ drawing }) => drawing.pictures.some(({ trajectory }) => trajectory.isSpoilt));
    if (spoilt.length > 0) return this.restartSpoilt(spoilt, error, isHalved);
    if (isHalved) return;
    if (batch.length === 1) await this.afterFailedWork(first, error);
    else for (const { drawing } of batch) drawing.isSuspect = true;
  }

  /** Does what is to be done after work for one drawing has failed. */
  async afterFailedWork(drawing: Drawing, error: unknown): Promise<void> {
    const remedy = await this.remedyFor(error, drawing, this.drawings.length > 1);
    if (remedy === 'restartAlone') this.restartAlone(drawing);
    else if (remedy === 'fail') this.end(drawing, error);
  }

  /** The remedy for a task that failed to begin. */
  afterFailedStart(error: unknown, waiting: Attempt): Promise<Remedy> {
    return this.remedyFor(error, waiting, this.drawings.length > 0);
  }

  private async remedyFor(error: unknown, attempt: Attempt, hasOthers: boolean): Promise<Remedy> {
    if (!(error instanceof OutOfMemoryError)) return 'fail';
    const hasMadeRoom = await this.models.releaseIdle();
    if (++attempt.timesOutOfMemory < maxTimesOutOfMemory && hasMadeRoom) return 'retry';
    return (hasMadeRoom || hasOthers) && !attempt.task.alone ? 'restartAlone' : 'fail';
  }

  private async restartSpoilt(spoilt: Batch, error: unknown, isHalved: boolean): Promise<void> {
    const hasMadeRoom = isHalved || (error instanceof OutOfMemoryError && (await this.models.releaseIdle()));
    for (const { drawing } of spoilt) {
      if (hasMadeRoom || !drawing.task.alone) this.restartAlone(drawing);
      else this.end(drawing, error);
    }
  }
}
