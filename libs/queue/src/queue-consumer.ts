import type { ClockWatch } from '@app/database';
import type { JsonLogger } from '@app/observability';
import { OnWorkerEvent, WorkerHost } from '@nestjs/bullmq';
import type { Job } from 'bullmq';
import type { JobData } from './jobs';
import { lockLost, lostLock } from './lost-lock';

/** Log messages of a queue. */
export interface QueueSentences {
  /** The queue is no longer consumed. */
  ended: string;
  connectionFailed: string;
  jobFailed: string;
}

/** Consumes a queue while the clock agrees with the database's, and logs what goes wrong with it. */
export abstract class QueueConsumer<Data extends JobData[keyof JobData]> extends WorkerHost {
  constructor(
    private readonly sentences: QueueSentences,
    protected readonly clock: ClockWatch,
    protected readonly logger: JsonLogger,
  ) {
    super();
  }

  /** Begins to take jobs. @returns a function to call before the worker is closed. */
  protected consume(): () => void {
    return this.clock.addConsumer(this.worker, (error) => this.logger.error(this.sentences.ended, error));
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
}
