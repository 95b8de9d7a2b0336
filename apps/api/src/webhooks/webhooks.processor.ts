import { JsonLogger } from '@app/observability';
import type { JobData } from '@app/queue';
import { ClockWatch, queueNames } from '@app/queue';
import { OnWorkerEvent, Processor, WorkerHost } from '@nestjs/bullmq';
import type { OnApplicationBootstrap } from '@nestjs/common';
import type { Job } from 'bullmq';
import { DelayedError, WaitingError } from 'bullmq';
import { Drain } from '../observability/drain';
import { WebhooksService } from './webhooks.service';

/** Consumes the delivery jobs: many at once, and few of them for the same receiver. */
@Processor(queueNames.webhooks, {
  autorun: false,
  concurrency: 50,
  lockDuration: 30_000,
  stalledInterval: 10_000,
  maxStalledCount: 10,
  runRetryDelay: 1000,
  removeOnComplete: { age: 3600 },
  removeOnFail: { age: 24 * 3600 },
})
export class WebhooksProcessor extends WorkerHost implements OnApplicationBootstrap {
  constructor(
    private readonly webhooks: WebhooksService,
    private readonly clock: ClockWatch,
    private readonly drain: Drain,
    private readonly logger: JsonLogger,
  ) {
    super();
  }

  onApplicationBootstrap(): void {
    const ungovern = this.clock.govern(this.worker, (error) =>
      this.logger.error('the webhooks are not delivered any more', error),
    );
    // Tries that are being made end by themselves within the time that a receiver has.
    this.drain.onBegin(() => {
      ungovern();
      return this.worker.close();
    });
  }

  override async process(job: Job<JobData['webhooks']>, token?: string): Promise<void> {
    if (!this.clock.agrees) {
      await job.moveToWait(token);
      throw new WaitingError();
    }
    const { waitMs } = await this.webhooks.attempt(job.data, job.id ?? '');
    if (waitMs === undefined) return;
    await job.moveToDelayed(Date.now() + waitMs, token);
    throw new DelayedError();
  }

  @OnWorkerEvent('error')
  onError(error: Error): void {
    this.logger.warnSparingly('webhook queue failed', { reason: error.message });
  }

  @OnWorkerEvent('failed')
  onFailed(job: Job<JobData['webhooks']> | undefined, error: Error): void {
    this.logger.error('webhook try failed on our side', { deliveryId: job?.data.deliveryId }, error);
  }
}
