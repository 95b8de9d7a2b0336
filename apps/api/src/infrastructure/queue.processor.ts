import type { ClockWatch } from '@app/database';
import type { JsonLogger } from '@app/observability';
import type { JobData } from '@app/queue';
import { lockLost, lostLock } from '@app/queue';
import { OnWorkerEvent, WorkerHost } from '@nestjs/bullmq';
import type { OnApplicationBootstrap } from '@nestjs/common';
import type { Job } from 'bullmq';
import { DelayedError, WaitingError } from 'bullmq';
import type { Drain } from './drain';

/** Log messages of a queue. */
interface Sentences {
  /** The queue is no longer consumed. */
  ended: string;
  connectionFailed: string;
  jobFailed: string;
}

/** Consumes a queue in the api, while its clock agrees with the database's and until the process begins to end. */
export abstract class QueueProcessor<Data extends JobData[keyof JobData]>
  extends WorkerHost
  implements OnApplicationBootstrap
{
  constructor(
    private readonly sentences: Sentences,
    private readonly clock: ClockWatch,
    private readonly drain: Drain,
    private readonly logger: JsonLogger,
  ) {
    super();
  }

  onApplicationBootstrap(): void {
    const removeConsumer = this.clock.addConsumer(this.worker, (error) =>
      this.logger.error(this.sentences.ended, error),
    );
    // Running jobs end by themselves within a limited time.
    this.drain.onBegin(() => {
      removeConsumer();
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

  @OnWorkerEvent('error')
  onError(error: Error): void {
    const lost = lostLock(error);
    if (lost !== undefined) this.logger.logSparingly(lockLost, { reason: lost });
    else this.logger.warnSparingly(this.sentences.connectionFailed, { reason: error.message });
  }

  @OnWorkerEvent('failed')
  onFailed(job: Job<Data> | undefined, error: Error): void {
    if (lostLock(error) !== undefined) return this.onError(error);
    this.logger.error(this.sentences.jobFailed, { ...job?.data }, error);
  }

  /** Runs a job. @returns when the same job must come again, in milliseconds since the epoch; undefined when it is done. */
  protected abstract run(job: Job<Data>): Promise<number | undefined>;
}
