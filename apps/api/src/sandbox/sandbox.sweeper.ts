import { DatabaseContact } from '@app/database';
import { ImageTask } from '@app/domain';
import { JOB_BACK_END } from '@app/queue';
import { RecurringService } from '@app/process';
import { abandonedMs, ImageTaskLifeCycle, fatalCount, isSilent, silenceUntil } from '@app/tasks';
import { JsonLogger } from '@app/observability';
import type { JobBackEnd } from '@app/queue';
import { isOpen, jobGraceMs, jobIdOf } from '@app/queue';
import { Inject, Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';

const intervalMs = 15_000;

/** Makes new jobs for sandbox tasks that lost theirs, and fails those that fail repeatedly. */
@Injectable()
export class SandboxSweeper extends RecurringService {
  constructor(
    @InjectRepository(ImageTask) private readonly tasks: Repository<ImageTask>,
    @Inject(JOB_BACK_END) private readonly jobs: JobBackEnd,
    private readonly lifeCycle: ImageTaskLifeCycle,
    private readonly contact: DatabaseContact,
    logger: JsonLogger,
  ) {
    super(logger);
    this.repeat({
      intervalMs,
      failure: 'sweep of the sandbox failed',
      work: (signal) => this.sweep(signal),
    });
  }

  /** @returns how many tasks got a new job or failed. */
  async sweep(signal?: AbortSignal): Promise<number> {
    const open = await this.tasks
      .createQueryBuilder('task')
      .where('task.sandbox')
      .andWhere(
        `(task.status = 'queued' AND task.created_at < now() - :graceMs * interval '1 ms'
          OR task.status = 'processing' AND ${isSilent(':until', abandonedMs)})`,
        { graceMs: jobGraceMs, until: silenceUntil(this.contact) },
      )
      .orderBy('task.createdAt', 'ASC')
      .limit(500)
      .getMany();
    let moved = 0;
    for (const task of open) {
      if (signal?.aborted) break;
      if (task.status === 'processing' && task.attempt >= fatalCount) {
        const error = 'The picture could not be made because of an internal error.';
        if (await this.lifeCycle.failFound(task, error)) moved++;
      } else if (!isOpen(await this.jobs.presence('sandbox', jobIdOf(task.id, task.enqueued))))
        if (await this.lifeCycle.requeue(task)) moved++;
    }
    if (moved > 0) this.logger.warn('sandbox tasks had lost their jobs', { moved });
    return moved;
  }
}
