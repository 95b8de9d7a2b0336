import { OutOfMemoryError } from '@app/diffusion';
import type { Batch } from './batch';
import type { CallTimes } from './call-times';
import { type DrawingInProgress, rowsOf, type Task } from './drawing';
import type { Models } from './models';

/**
 * Remedy for a lack of memory.
 * - `again`: room was made, so the same work is done again.
 * - `alone`: the task is begun anew with nothing beside it.
 * - `end`: the task fails.
 */
export type Remedy = 'again' | 'alone' | 'end';

/**
 * Remedies for work that failed:
 * - A call of several pictures that lacks memory is made again with half of its rows.
 * - After another error in a call of several drawings each of them gets a call of its own, so that the one at fault is
 *   found and only that one fails.
 * - Other work that lacks memory is done again once models that are not in use are released. If there are none, its task
 *   is begun anew with nothing beside it. A task that had nothing beside it fails.
 * - A drawing that a failed call has left in the middle of a step is begun anew.
 * - Anything else fails.
 */
export class Remedies {
  /**
   * @param drawings of the loop
   * @param restartAlone begins a drawing's task anew with nothing beside it
   * @param end lets a drawing fail
   */
  constructor(
    private readonly models: Models,
    private readonly times: CallTimes,
    private readonly drawings: readonly DrawingInProgress[],
    private readonly restartAlone: (drawing: DrawingInProgress) => void,
    private readonly end: (drawing: DrawingInProgress, error: unknown) => void,
  ) {}

  async afterCall(batch: Batch, error: unknown): Promise<void> {
    const spoilt = batch.filter(({ drawing }) => drawing.pictures.some(({ trajectory }) => trajectory.isSpoilt));
    if (spoilt.length > 0) return this.beginAnew(spoilt, error);
    const [{ drawing: first }] = batch;
    const pictures = batch.flatMap((part) => part.pictures);
    const isOutOfMemory = error instanceof OutOfMemoryError;
    if (isOutOfMemory && this.times.halve(first.callKey, rowsOf(pictures), pictures[0].rows)) return;
    if (batch.length === 1) await this.afterOne(first, error);
    else for (const { drawing } of batch) drawing.isSuspect = true;
  }

  /** Finds the remedy for work that was done for one drawing. */
  async afterOne(drawing: DrawingInProgress, error: unknown): Promise<void> {
    const remedy = await this.remedyFor(error, drawing.task, this.drawings.length > 1);
    if (remedy === 'alone') this.restartAlone(drawing);
    else if (remedy === 'end') this.end(drawing, error);
  }

  /** The remedy for a task that could not begin. */
  afterBeginning(error: unknown, task: Task): Promise<Remedy> {
    return this.remedyFor(error, task, this.drawings.length > 0);
  }

  private async remedyFor(error: unknown, { alone }: Task, hasOthers: boolean): Promise<Remedy> {
    if (!(error instanceof OutOfMemoryError)) return 'end';
    if (await this.models.releaseIdle()) return 'again';
    return hasOthers && !alone ? 'alone' : 'end';
  }

  private async beginAnew(spoilt: Batch, error: unknown): Promise<void> {
    const hasMadeRoom = error instanceof OutOfMemoryError && (await this.models.releaseIdle());
    for (const { drawing } of spoilt) {
      if (hasMadeRoom || !drawing.task.alone) this.restartAlone(drawing);
      else this.end(drawing, error);
    }
  }
}
