import { underSessionLock } from '@app/database';
import type { Task } from '@app/domain';
import { JsonLogger } from '@app/observability';
import { RecurringService } from '@app/process';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { deathsAfter, fatalCount, fatalDeathsOfTraining } from './deaths';
import { Tasks } from './tasks';

const intervalMs = 2_000;

/** Advisory lock that lets one process at a time sweep: "SWEP" in ASCII. */
const sweepLock = 0x53574550;

/**
 * Claims after which a sandbox key's task is blamed for the death of its workers; each end of a process costs one too.
 */
const mostSandboxAttempts = 2 * fatalCount;

/**
 * Ends what is dead, in one process at a time: a task whose worker is silent goes back into the queue, or fails if its
 * workers died too often.
 */
@Injectable()
export class TaskSweep extends RecurringService {
  constructor(
    private readonly dataSource: DataSource,
    private readonly tasks: Tasks,
    logger: JsonLogger,
  ) {
    super(logger);
    this.repeat({ intervalMs, failure: 'the sweep of tasks failed', work: (signal) => this.sweep(signal) });
  }

  /** @returns whether it swept: not while another process does */
  async sweep(signal?: AbortSignal): Promise<boolean> {
    const swept = await underSessionLock(this.dataSource, sweepLock, async () => {
      for (const task of await this.tasks.silent()) {
        if (signal?.aborted) break;
        // A task that cannot be moved does not hold up the others; the next sweep tries again.
        await this.end(task).catch((error: unknown) =>
          this.logger.error('could not be swept', { taskId: task.id }, error),
        );
      }
      return true;
    });
    return swept ?? false;
  }

  private async end(task: Task): Promise<void> {
    const { id: taskId, attempt } = task;
    const error = fatalError(task);
    if (!(await this.tasks.endSilent(task, error))) return;
    if (error === undefined) this.logger.warn('its worker is silent: put back into the queue', { taskId, attempt });
    else this.logger.error('failed for good: its workers died', { taskId, attempt });
  }
}

function fatalError(task: Task): string | undefined {
  const isTraining = task.kind === 'training';
  const fatal = isTraining ? fatalDeathsOfTraining : fatalCount;
  const isFatal = task.sandbox ? task.attempt >= mostSandboxAttempts : deathsAfter(task) >= fatal;
  const failed =
    task.queue === 'weights'
      ? 'The weights could not be fetched'
      : isTraining
        ? 'The Fine-Tune could not be trained'
        : 'The picture could not be drawn';
  return isFatal ? `${failed}: its worker ended unexpectedly in ${fatal} tries.` : undefined;
}
