import type { ImageTask } from '@app/domain';
import { ImageTaskLifeCycle } from '@app/image-tasks';
import { JsonLogger } from '@app/observability';
import { StorageUnavailableError } from '@app/storage';
import { Injectable } from '@nestjs/common';
import { DrawingAbortedError, DrawingRefusedError, EngineBrokenError } from '../engine/engine';
import { retrying } from './retrying';
import type { TaskHold } from './task-hold';
import { TaskRefusedError } from './task-refused-error';

/** Claims of a task after which it is given up, whatever ended them. */
export const maxAttempts = 5;

/** Wait before the next try: 2, 4, 8, 16 seconds. */
const backOffMs = (attempt: number): number => 1_000 * 2 ** Math.min(attempt, 6);

/** Decides what becomes of a task whose drawing did not succeed. */
@Injectable()
export class FailureService {
  constructor(
    private readonly lifeCycle: ImageTaskLifeCycle,
    private readonly logger: JsonLogger,
  ) {}

  async settle(task: ImageTask, error: unknown, hold: Pick<TaskHold, 'lost' | 'signal'>): Promise<void> {
    const about = { taskId: task.id, attempt: task.attempt };
    if (hold.lost) {
      this.logger.log('given up: canceled, deleted or taken over', about);
    } else if (error instanceof TaskRefusedError || error instanceof DrawingRefusedError) {
      this.logger.warn('failed', about, { reason: error.message });
      await this.fail(task, error.message);
    } else if (error instanceof DrawingAbortedError || hold.signal.aborted) {
      await retrying(() => this.lifeCycle.release(task));
      this.logger.log('given back, for the process ends', about);
    } else if (task.attempt >= maxAttempts) {
      this.logger.error('failed for good', about, error);
      await this.fail(task, sentenceOf(error));
    } else {
      const delayMs = backOffMs(task.attempt);
      this.logger.error('failed, to be tried again', { ...about, delayMs }, error);
      await retrying(() => this.lifeCycle.release(task, { delayMs }));
    }
  }

  /** Ends a task whose workers died, one after the other, while they drew it. */
  async endDeadly(task: Pick<ImageTask, 'id' | 'attempt'>): Promise<void> {
    this.logger.error('failed for good: its workers died', { taskId: task.id, attempt: task.attempt });
    await this.fail(task, `The picture could not be drawn: its worker ended unexpectedly in ${maxAttempts} tries.`);
  }

  private async fail(task: Pick<ImageTask, 'id' | 'attempt'>, error: string): Promise<void> {
    await retrying(() => this.lifeCycle.settle(task, { status: 'failed', error }));
  }
}

/** What the owner of the task is told: no stack, no path, nothing of how it is built. */
function sentenceOf(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'ENOSPC' || code === 'EDQUOT') return 'The picture could not be stored: the storage is full.';
  if (error instanceof StorageUnavailableError)
    return 'The picture could not be stored: the storage could not be reached.';
  if (error instanceof EngineBrokenError)
    return `The picture could not be drawn: the engine broke in ${maxAttempts} tries.`;
  return `The picture could not be made in ${maxAttempts} tries because of an internal error.`;
}
