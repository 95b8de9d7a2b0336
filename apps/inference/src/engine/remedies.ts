import { asOutOfMemory, OutOfMemoryError } from '@app/diffusion';
import type { Batch } from './batch';
import type { CallTimes } from './call-times';
import { type DrawingInProgress, rowsOf, type Task } from './drawing';
import type { Models } from './models';

/** Remedy for a lack of memory. `again`: room was made. `alone`: to begin with nothing beside it. `end`: none is left. */
export type Remedy = 'again' | 'alone' | 'end';

/** The drawings of the loop, and calls back to it. */
interface RemediesContext {
  models: Models;
  times: CallTimes;
  drawings: readonly DrawingInProgress[];
  /** Begins a drawing anew with nothing beside it. */
  drawAlone: (drawing: DrawingInProgress) => void;
  end: (drawing: DrawingInProgress, error: unknown) => void;
}

/**
 * Remedies for work that failed:
 * - A call of several pictures that lacks memory is made again with half of its rows.
 * - After another error in a call of several drawings each of them gets a call of its own, so that the one at fault is
 *   found and only that one fails.
 * - A call of one picture, a decoding, a tile or a task's beginning that lacks memory is tried again once models that are
 *   not in use are released. If there are none, it is begun anew with nothing beside it. If there was nothing, it fails.
 * - A drawing that a failed call has left in the middle of a step is begun anew.
 * - Anything else fails.
 */
export class Remedies {
  constructor(private readonly context: RemediesContext) {}

  async afterCall(batch: Batch, error: unknown): Promise<void> {
    const { times } = this.context;
    const spoilt = batch.filter(({ drawing }) => drawing.pictures.some(({ trajectory }) => trajectory.isSpoilt));
    if (spoilt.length > 0) return this.beginAnew(spoilt, error);
    const [{ drawing: first }] = batch;
    const pictures = batch.flatMap((part) => part.pictures);
    const isOutOfMemory = error instanceof OutOfMemoryError;
    if (isOutOfMemory && times.halve(first.callKey, rowsOf(pictures), pictures[0].rows)) return;
    if (batch.length === 1) await this.afterOne(first, error);
    else for (const { drawing } of batch) drawing.isSuspect = true;
  }

  /** Finds the remedy for work that was done for one drawing. */
  async afterOne(drawing: DrawingInProgress, error: unknown): Promise<void> {
    const { drawings, drawAlone, end } = this.context;
    const remedy = await this.remedyFor(error, drawing.task, drawings.length > 1);
    if (remedy === 'alone') drawAlone(drawing);
    else if (remedy === 'end') end(drawing, error);
  }

  /** The remedy for a task that could not begin. */
  afterBeginning(error: unknown, task: Task): Promise<Remedy> {
    return this.remedyFor(asOutOfMemory(error), task, this.context.drawings.length > 0);
  }

  private async remedyFor(error: unknown, { alone }: Task, hasOthers: boolean): Promise<Remedy> {
    if (!(error instanceof OutOfMemoryError)) return 'end';
    if (await this.context.models.releaseIdle()) return 'again';
    return hasOthers && !alone ? 'alone' : 'end';
  }

  private async beginAnew(spoilt: Batch, error: unknown): Promise<void> {
    const { models, drawAlone, end } = this.context;
    const hasMadeRoom = error instanceof OutOfMemoryError && (await models.releaseIdle());
    for (const { drawing } of spoilt) {
      if (hasMadeRoom || !drawing.task.alone) drawAlone(drawing);
      else end(drawing, error);
    }
  }
}
