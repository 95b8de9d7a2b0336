import type { ImageTask } from '@app/domain';
import { deathsAfter, ImageTaskLifeCycle, fatalCount } from '@app/tasks';
import { JsonLogger } from '@app/observability';
import { StorageUnavailableError } from '@app/storage';
import { Injectable } from '@nestjs/common';
import { DrawingAbortedError, DrawingRefusedError, EngineBrokenError, EngineLostError } from '../engine/engine-errors';
import { withRetries } from './with-retries';
import type { TaskHold } from './task-hold';
import { TaskRefusedError } from './task-refused-error';

/** Wait before the next attempt: 2, 4, 8, 16 seconds; `fatalCount` bounds the tries. */
const backOffMs = (tries: number): number => 1_000 * 2 ** tries;

const workersDied = `The picture could not be drawn: its worker ended unexpectedly in ${fatalCount} tries.`;

/** Decides what happens to a task that was not drawn successfully. */
@Injectable()
export class FailureService {
  constructor(
    private readonly lifeCycle: ImageTaskLifeCycle,
    private readonly logger: JsonLogger,
  ) {}

  async handle(task: ImageTask, error: unknown, hold: Pick<TaskHold, 'lost' | 'signal'>): Promise<void> {
    const about = { taskId: task.id, attempt: task.attempt };
    if (hold.lost) {
      this.logger.log('given up: canceled, deleted or taken over', about);
    } else if (error instanceof TaskRefusedError || error instanceof DrawingRefusedError) {
      this.logger.warn('failed', about, { reason: error.message });
      await this.fail(task, error.message);
    } else if (error instanceof DrawingAbortedError || hold.signal.aborted) {
      await withRetries(() => this.lifeCycle.release(task));
      this.logger.log('given back', { ...about, reason: error instanceof Error ? error.message : String(error) });
    } else {
      // A lost engine may be another task's fault, so it counts as a death of the worker and not
      // as this task's failure.
      const because = error instanceof EngineLostError ? 'died' : 'failed';
      const tries = because === 'died' ? deathsAfter(task) : task.failures + 1;
      if (tries >= fatalCount) {
        this.logger.error('failed for good', about, error);
        await this.fail(task, publicMessage(error));
      } else {
        const delayMs = backOffMs(tries);
        this.logger.error('failed, will be retried', { ...about, delayMs }, error);
        await withRetries(() => this.lifeCycle.release(task, { delayMs, because }));
      }
    }
  }

  /** Fails a claimed task whose workers died one after the other while drawing it. */
  async failAfterWorkerDeaths(task: Pick<ImageTask, 'id' | 'attempt'>): Promise<void> {
    this.logWorkerDeaths(task);
    await this.fail(task, workersDied);
  }

  /** Does the same for a task as a sweeper found it. False if it has changed meanwhile, as when its worker is back. */
  async failAbandoned(found: ImageTask): Promise<boolean> {
    const failed = await this.lifeCycle.failFound(found, workersDied);
    if (failed) this.logWorkerDeaths(found);
    return failed;
  }

  private logWorkerDeaths({ id: taskId, attempt }: Pick<ImageTask, 'id' | 'attempt'>): void {
    this.logger.error('failed for good: its workers died', { taskId, attempt });
  }

  private async fail(task: Pick<ImageTask, 'id' | 'attempt'>, error: string): Promise<void> {
    await withRetries(() => this.lifeCycle.settle(task, { status: 'failed', error }));
  }
}

/** The error message for the task's owner: no stack, no path, no internals. */
function publicMessage(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'ENOSPC' || code === 'EDQUOT') return 'The picture could not be stored: the storage is full.';
  if (error instanceof StorageUnavailableError)
    return 'The picture could not be stored: the storage could not be reached.';
  if (error instanceof EngineBrokenError)
    return `The picture could not be drawn: the engine broke in ${fatalCount} tries.`;
  return `The picture could not be made in ${fatalCount} tries because of an internal error.`;
}
