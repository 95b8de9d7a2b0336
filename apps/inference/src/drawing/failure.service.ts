import type { Attempt, Task } from '@app/domain';
import { deathsAfter, fatalCount, StorageFullError, type TaskHold, Tasks } from '@app/tasks';
import { CredentialsError } from '@app/credentials';
import { JsonLogger } from '@app/observability';
import { ModerationDownError } from '@app/moderation';
import { PictureError } from '@app/pictures';
import { StorageUnavailableError } from '@app/storage';
import { Inject, Injectable } from '@nestjs/common';
import {
  EngineBrokenError,
  EngineLostError,
  PicturesFilteredError,
  TaskAbortedError,
  TaskRefusedError,
} from '../engine-client/task-errors';
import type { Ending } from '../metrics/inference-metrics';
import { StorageHealth } from '../pictures/storage-health';
import { withRetries } from './with-retries';

/** Wait before the next attempt: 2, 4, 8, 16 seconds; `fatalCount` bounds the tries. */
const backOffMs = (tries: number): number => 1_000 * 2 ** tries;

/** Wait before a task is drawn again that could not be signed or stored. */
const storageDelayMs = 5_000;
/** Longer: what could not be looked at is drawn from the beginning. */
const moderationDelayMs = 30_000;

/** Decides what happens to a task that was not drawn successfully. */
@Injectable()
export class FailureService {
  constructor(
    private readonly tasks: Tasks,
    private readonly logger: JsonLogger,
    @Inject(StorageHealth) private readonly storage: Pick<StorageHealth, 'isAtFault'>,
  ) {}

  /** Charges what was used if the task's owner has canceled or deleted it, or has no room for its pictures. */
  async handle(
    task: Task,
    error: unknown,
    { lost, signal, usedSeconds }: Pick<TaskHold, 'lost' | 'signal' | 'usedSeconds'>,
  ): Promise<Exclude<Ending, 'succeeded'>> {
    const about = { taskId: task.id, attempt: task.attempt };
    if (lost) {
      this.logger.log('given up: canceled, deleted or taken over', about);
      // Once only: a second time after a commit whose answer was lost would charge twice.
      await this.tasks
        .chargeLost(task, usedSeconds)
        .catch((failure: Error) =>
          this.logger.warn('what was used is not charged', about, { reason: failure.message }),
        );
      return 'canceled';
    }
    if (isRefusal(error)) {
      // What a sandbox fails with is a text of its caller.
      this.logger.warn('failed', about, task.sandbox ? {} : { reason: error.message });
      await this.fail(task, error, usedSeconds);
      return 'failed';
    }
    if (error instanceof TaskAbortedError || signal.aborted) {
      await withRetries(() => this.tasks.release(task));
      this.logger.log('given back', { ...about, reason: error instanceof Error ? error.message : String(error) });
      return 'given_back';
    }
    const trouble = await this.troubleOf(error);
    if (trouble) {
      // No fault of the task, however long it lasts.
      await withRetries(() => this.tasks.release(task, { delayMs: trouble.delayMs }));
      this.logger.warn(`given back: ${trouble.why}`, { ...about, reason: (error as Error).message });
      return 'given_back';
    }
    // A lost engine may be another task's fault, so it counts as a death of the worker and not
    // as this task's failure. The process of a training is its own.
    const because = error instanceof EngineLostError && task.kind !== 'training' ? 'died' : 'failed';
    const tries = because === 'died' ? deathsAfter(task) : task.failures + 1;
    if (tries >= fatalCount) {
      this.logger.error('failed for good', about, error);
      await this.fail(task, { message: publicMessage(error, task) });
    } else {
      const delayMs = backOffMs(tries);
      this.logger.error('failed, will be retried', { ...about, delayMs }, error);
      await withRetries(() => this.tasks.release(task, { delayMs, because }));
    }
    return 'failed';
  }

  /** What pictures need beside the engine, if that is what was missing. */
  private async troubleOf(error: unknown): Promise<{ why: string; delayMs: number } | undefined> {
    if (error instanceof CredentialsError) return { why: 'pictures cannot be signed', delayMs: storageDelayMs };
    if (error instanceof ModerationDownError)
      return { why: 'the moderation cannot be asked', delayMs: moderationDelayMs };
    if (await this.storage.isAtFault(error)) return { why: 'the storage takes no files', delayMs: storageDelayMs };
    return undefined;
  }

  private async fail(task: Attempt, why: Pick<Error, 'message'>, computeSeconds = 0): Promise<void> {
    const { filtered, flaggedBy } = why instanceof PicturesFilteredError ? why : {};
    const used = { ...(computeSeconds > 0 && { computeSeconds }), ...(filtered && { filtered, flaggedBy }) };
    await withRetries(() => this.tasks.settle(task, { status: 'failed', error: why.message, ...used }));
  }
}

/** Errors that would happen again: the message may be shown to the task's owner. */
function isRefusal(error: unknown): error is Error {
  return [TaskRefusedError, PictureError, StorageFullError].some((kind) => error instanceof kind);
}

/** The error message for the task's owner: no stack, no path, no internals. */
function publicMessage(error: unknown, { kind }: Pick<Task, 'kind'>): string {
  const isTraining = kind === 'training';
  const stored = isTraining ? 'What was trained' : 'The picture';
  if (error instanceof StorageUnavailableError)
    return `${stored} could not be stored: the storage could not be reached.`;
  if (isTraining) return `The Fine-Tune could not be trained in ${fatalCount} tries because of an internal error.`;
  if (error instanceof EngineBrokenError)
    return `The picture could not be drawn: the engine broke in ${fatalCount} tries.`;
  return `The picture could not be made in ${fatalCount} tries because of an internal error.`;
}
