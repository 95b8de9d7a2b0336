import type { ClockWatch } from '@app/database';
import type { QueueSentences } from '@app/queue';
import { QueueConsumer } from '@app/queue';
import type { JsonLogger } from '@app/observability';
import type { JobData } from '@app/queue';
import type { OnApplicationBootstrap } from '@nestjs/common';
import type { Job } from 'bullmq';
import { DelayedError, WaitingError } from 'bullmq';
import type { Drain } from './drain';

/** Consumes a queue in the api until the process begins to end. */
export abstract class QueueProcessor<Data extends JobData[keyof JobData]>
  extends QueueConsumer<Data>
  implements OnApplicationBootstrap
{
  constructor(
    sentences: QueueSentences,
    clock: ClockWatch,
    private readonly drain: Drain,
    logger: JsonLogger,
  ) {
    super(sentences, clock, logger);
  }

  onApplicationBootstrap(): void {
    const stop = this.consume();
    // Running jobs end by themselves within a limited time.
    this.drain.onBegin(() => {
      stop();
      return this.worker.close();
    });
  }

  override async process(job: Job<Data>, token?: string): Promise<void> {
    if (!this.clock.agrees) {
      await job.moveToWait(token);
      throw new WaitingError();
    }
    const nextAt = await this.run(job);
    if (nextAt === undefined) return;
    await job.moveToDelayed(nextAt, token);
    throw new DelayedError();
  }

  /**
   * Runs a job. @returns when the same job must come again, in milliseconds since the epoch; undefined when it is done.
   */
  protected abstract run(job: Job<Data>): Promise<number | undefined>;
}
