import { DatabaseContact } from '@app/database';
import { ImageTask } from '@app/domain';
import { JOB_BACK_END } from '@app/queue';
import { abandonedMs, deathsAfter, ImageTaskLifeCycle, fatalCount, isSilent, silenceUntil } from '@app/tasks';
import { JsonLogger } from '@app/observability';
import type { JobBackEnd } from '@app/queue';
import { jobGraceMs, jobIdOf } from '@app/queue';
import { Inject, Injectable } from '@nestjs/common';
import type { ObjectLiteral } from 'typeorm';
import { DataSource } from 'typeorm';
import { FailureService } from '../drawing/failure.service';

/** Rows per sweep; the next sweep handles the rest. */
const batch = 500;

/** States of a job that will still be worked on. */
const waitingStates: ReadonlySet<string> = new Set(['waiting', 'delayed', 'prioritized']);

/** Makes new jobs for tasks that lost their job or their worker, and fails tasks that kill every worker. */
@Injectable()
export class TaskSweeper {
  constructor(
    private readonly dataSource: DataSource,
    private readonly lifeCycle: ImageTaskLifeCycle,
    private readonly failures: FailureService,
    private readonly logger: JsonLogger,
    private readonly contact: DatabaseContact,
    @Inject(JOB_BACK_END) private readonly jobs: JobBackEnd,
  ) {}

  /** @returns how many tasks got a new job, and how many failed */
  async sweep(signal?: AbortSignal): Promise<{ requeued: number; ended: number }> {
    const counts = { requeued: 0, ended: 0 };
    for (const task of await this.abandoned()) {
      if (signal?.aborted) return counts;
      await this.unhindered(task, async () => {
        if (deathsAfter(task) >= fatalCount) {
          if (await this.failures.failAbandoned(task)) counts.ended++;
          return;
        }
        // An active job died with its worker, and the queue has not noticed for all this time.
        const job = await this.jobs.presence('images', task.ticket ?? jobIdOf(task.id, task.enqueued));
        if (!waitingStates.has(job) && (await this.requeue(task, job))) counts.requeued++;
      });
    }
    for (const task of await this.queuedBeyondJobs()) {
      if (signal?.aborted) return counts;
      await this.unhindered(task, async () => {
        if (await this.requeue(task, 'too few')) counts.requeued++;
      });
    }
    return counts;
  }

  /** A task that cannot be moved does not keep the others from it; the next sweep tries again. */
  private async unhindered({ id: taskId }: ImageTask, work: () => Promise<void>): Promise<void> {
    await work().catch((error: unknown) => this.logger.error('could not be swept', { taskId }, error));
  }

  /** The oldest queued tasks, one for each job that is missing: any job serves any task. */
  private async queuedBeyondJobs(): Promise<ImageTask[]> {
    // Jobs are counted first: a task that ends between the two counts can only make the shortage look smaller.
    const jobs = Object.values(await this.jobs.counts('images')).reduce((sum, count) => sum + count, 0);
    const { manager } = this.dataSource;
    const [{ open }] = await manager.query<{ open: number }[]>(
      `SELECT (
         (SELECT count(*) FROM image_tasks WHERE status = 'processing' AND NOT sandbox) +
         (SELECT count(*) FROM image_tasks
          WHERE status = 'queued' AND NOT sandbox AND created_at < now() - $1 * interval '1 ms')
       )::integer AS open`,
      [jobGraceMs],
    );
    if (jobs >= open) return [];
    const queued = `status = 'queued' AND created_at < now() - :age * interval '1 ms'`;
    return this.findOpen(queued, { age: jobGraceMs }, Math.min(open - jobs, batch));
  }

  private async requeue(task: ImageTask, job: string): Promise<boolean> {
    const { id: taskId, status, attempt } = task;
    const moved = await this.lifeCycle.requeue(task);
    if (moved) this.logger.warn('given a new job', { taskId, status, attempt, job });
    return moved;
  }

  private abandoned(): Promise<ImageTask[]> {
    const until = silenceUntil(this.contact);
    return this.findOpen(`status = 'processing' AND ${isSilent(':until', abandonedMs)}`, { until }, batch);
  }

  private findOpen(condition: string, parameters: ObjectLiteral, limit: number): Promise<ImageTask[]> {
    return this.dataSource.manager
      .createQueryBuilder(ImageTask, 'task')
      .where(`NOT sandbox AND ${condition}`, parameters)
      .orderBy('task.createdAt', 'ASC')
      .limit(limit)
      .getMany();
  }
}
