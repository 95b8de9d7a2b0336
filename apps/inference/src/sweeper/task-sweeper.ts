import { ImageTask } from '@app/domain';
import { JOB_BACK_END } from '@app/foundation';
import { heartbeatTimeoutMs, ImageTaskLifeCycle, silenceFactor } from '@app/image-tasks';
import { JsonLogger } from '@app/observability';
import type { JobBackEnd } from '@app/queue';
import { jobIdOf } from '@app/queue';
import { Inject, Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { FailureService, maxAttempts } from '../drawing/failure.service';

/** The job of a row this young may still come: Redis is given it after the commit. */
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
  async sweep(signal?: AbortSignal): Promise<{ requeued: number; ended: number }> {
    const counts = { requeued: 0, ended: 0 };
    for (const task of await this.abandoned()) {
      if (signal?.aborted) return counts;
      if (task.deaths + 1 >= maxAttempts) {
        await this.failures.endDeadly(task);
        counts.ended++;
        continue;
      }
      // An active job died with its worker, and the queue has not noticed for all this time.
      const job = await this.jobs.presence('images', task.ticket ?? jobIdOf(task.id, task.enqueued));
      if (!waitingStates.has(job)) counts.requeued += await this.requeue(task, job);
    }
    for (const task of await this.withoutTicket()) {
      if (signal?.aborted) return counts;
      counts.requeued += await this.requeue(task, 'too few');
    }
    return counts;
  }

  /** As many of the oldest queued tasks as there are fewer jobs than open tasks: any job serves any task. */
  private async withoutTicket(): Promise<ImageTask[]> {
    // The jobs first: a task that ends between the two counts makes the want look smaller, never greater.
    const jobs = Object.values(await this.jobs.counts('images')).reduce((sum, count) => sum + count, 0);
    const { manager } = this.dataSource;
    const [{ open }] = await manager.query<{ open: number }[]>(
      `SELECT (
         (SELECT count(*) FROM image_tasks WHERE status = 'processing' AND NOT sandbox) +
         (SELECT count(*) FROM image_tasks
          WHERE status = 'queued' AND NOT sandbox AND created_at < now() - $1 * interval '1 ms')
       )::integer AS open`,
      [graceMs],
    );
    if (jobs >= open) return [];
    const queued = `status = 'queued' AND created_at < now() - :age * interval '1 ms'`;
    return this.open(queued, graceMs, Math.min(open - jobs, batch));
  }

  private async requeue(task: ImageTask, job: string): Promise<number> {
    if (!(await this.lifeCycle.requeue(task))) return 0;
    const { id: taskId, status, attempt } = task;
    this.logger.warn('given a new job', { taskId, status, attempt, job });
    return 1;
  }

  private abandoned(): Promise<ImageTask[]> {
    const silent = `heartbeat_at < now() - :age * ${silenceFactor} * interval '1 ms'`;
    return this.open(`status = 'processing' AND ${silent}`, abandonedMs, batch);
  }

  private open(condition: string, age: number, limit: number): Promise<ImageTask[]> {
    return this.dataSource.manager
      .createQueryBuilder(ImageTask, 'task')
      .where(`NOT sandbox AND ${condition}`, { age })
      .orderBy('task.createdAt', 'ASC')
      .limit(limit)
      .getMany();
  }
}
