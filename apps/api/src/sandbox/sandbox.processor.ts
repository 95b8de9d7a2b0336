import { JsonLogger } from '@app/logging';
import type { JobData } from '@app/queue';
import { ClockWatch, queueNames } from '@app/queue';
import { OnWorkerEvent, Processor, WorkerHost } from '@nestjs/bullmq';
import type { OnApplicationBootstrap } from '@nestjs/common';
import type { Job } from 'bullmq';
import { DelayedError, WaitingError } from 'bullmq';
import { Drain } from '../shutdown/drain';
import { SandboxService } from './sandbox.service';

/** Consumes the jobs of sandbox keys, in the api: they need no worker. */
@Processor(queueNames.sandbox, {
  autorun: false,
  concurrency: 4,
  lockDuration: 15_000,
  stalledInterval: 5_000,
  maxStalledCount: 10,
  runRetryDelay: 1000,
  removeOnComplete: { count: 100 },
  removeOnFail: { count: 1000 },
})
export class SandboxProcessor extends WorkerHost implements OnApplicationBootstrap {
  constructor(
    private readonly sandbox: SandboxService,
    private readonly clock: ClockWatch,
    private readonly drain: Drain,
    private readonly logger: JsonLogger,
  ) {
    super();
  }

  onApplicationBootstrap(): void {
    const ungovern = this.clock.govern(this.worker, (error) =>
      this.logger.error('the sandbox queue is not consumed any more', error),
    );
    this.drain.onBegin(() => {
      ungovern();
      return this.worker.close();
    });
  }

  override async process(job: Job<JobData['sandbox']>, token?: string): Promise<void> {
    if (!this.clock.agrees) {
      await job.moveToWait(token);
      throw new WaitingError();
    }
    const { waitMs } = await this.sandbox.settle(job.data.taskId);
    if (waitMs === undefined) return;
    await job.moveToDelayed(Date.now() + waitMs, token);
    throw new DelayedError();
  }

  @OnWorkerEvent('error')
  onError(error: Error): void {
    this.logger.warnSparingly('sandbox queue failed', { reason: error.message });
  }

  @OnWorkerEvent('failed')
  onFailed(job: Job<JobData['sandbox']> | undefined, error: Error): void {
    this.logger.error('a sandbox job failed, the sweeper will make another', { taskId: job?.data.taskId }, error);
  }
}
