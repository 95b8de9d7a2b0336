import { ClockWatch } from '@app/database';
import { JsonLogger } from '@app/observability';
import type { JobData } from '@app/queue';
import { queueNames } from '@app/queue';
import { Processor } from '@nestjs/bullmq';
import type { Job } from 'bullmq';
import { QueueProcessor } from '../http/queue.processor';
import { Drain } from '../http/drain';
import { WebhooksService } from './webhooks.service';

/** Consumes the delivery jobs: many at once, but few of one caller for the same receiver. */
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
export class WebhooksProcessor extends QueueProcessor<JobData['webhooks']> {
  constructor(
    private readonly webhooks: WebhooksService,
    clock: ClockWatch,
    drain: Drain,
    logger: JsonLogger,
  ) {
    const sentences = {
      ended: 'the webhooks are no longer delivered',
      connectionFailed: 'webhook queue failed',
      jobFailed: 'webhook attempt failed on our side',
    };
    super(sentences, clock, drain, logger);
  }

  protected override async run(job: Job<JobData['webhooks']>): Promise<number | undefined> {
    const { waitMs } = await this.webhooks.attempt(job.data, job);
    return waitMs === undefined ? undefined : Date.now() + waitMs;
  }
}
