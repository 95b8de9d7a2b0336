import { ImageTask } from '@app/domain';
import { JsonLogger } from '@app/logging';
import type { JobBackEnd } from '@app/queue';
import { heartbeatTimeoutMs, ImageTaskLifeCycle, jobIdOf } from '@app/queue';
import { Inject, Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { FailureService, maxAttempts } from '../drawing/failure.service';
import { JOB_BACK_END } from '../tokens';

/** A row this young may have a job that is not to be seen yet. */
const graceMs = 5_000;
/** The queue itself hands a dead worker's job to another long before; this is for jobs that are gone. */
const abandonedMs = 3 * heartbeatTimeoutMs;
/** Rows looked at in one sweep; the next one goes on with the rest. */
const batch = 500;

/** States of a job that will be worked on without our help. */
const waitingStates: ReadonlySet<string> = new Set(['waiting', 'delayed', 'prioritized']);

/** Gives tasks that lost their job or their worker a new job, and ends those that lose every worker. */
@Injectable()
export class TaskSweeper {
  constructor(
    private readonly dataSource: DataSource,
    private readonly lifeCycle: ImageTaskLifeCycle,
    private readonly failures: FailureService,
    private readonly logger: JsonLogger,
    @Inject(JOB_BACK_END) private readonly jobs: JobBackEnd,
  ) {}

  /** @returns how many tasks were given a new job, and how many were ended */
  async sweep(): Promise<{ requeued: number; ended: number }> {
    const counts = { requeued: 0, ended: 0 };
    for (const task of [...(await this.queued()), ...(await this.abandoned())]) {
      const isAbandoned = task.status === 'processing';
      if (isAbandoned && task.attempt >= maxAttempts) {
        await this.failures.endDeadly(task);
        counts.ended++;
        continue;
      }
      const presence = await this.jobs.presence('images', jobIdOf(task.id, task.enqueued));
      // The active job of a queued row is about to be claimed; that of an abandoned row died with its worker.
      if (waitingStates.has(presence) || (presence === 'active' && !isAbandoned)) continue;
      if (!(await this.lifeCycle.requeue(task))) continue;
      counts.requeued++;
      this.logger.warn('given a new job', {
        taskId: task.id,
        status: task.status,
        attempt: task.attempt,
        job: presence,
      });
    }
    return counts;
  }

  private queued(): Promise<ImageTask[]> {
    return this.open(`status = 'queued' AND created_at < now() - :age * interval '1 ms'`, graceMs);
  }

  private abandoned(): Promise<ImageTask[]> {
    return this.open(`status = 'processing' AND heartbeat_at < now() - :age * interval '1 ms'`, abandonedMs);
  }

  private open(condition: string, age: number): Promise<ImageTask[]> {
    return this.dataSource.manager
      .createQueryBuilder(ImageTask, 'task')
      .where(condition, { age })
      .orderBy('task.createdAt', 'ASC')
      .limit(batch)
      .getMany();
  }
}
