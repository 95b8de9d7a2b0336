import { JsonLogger } from '@app/observability';
import type { JobData } from '@app/queue';
import { ClockWatch, queueNames } from '@app/queue';
import { OnWorkerEvent, Processor, WorkerHost } from '@nestjs/bullmq';
import type { OnApplicationBootstrap } from '@nestjs/common';
import type { Job } from 'bullmq';
import { DelayedError, WaitingError } from 'bullmq';
import { Drain } from '../observability/drain';
import { SandboxService } from './sandbox.service';

/** Jobs at a time, of one key and of all. */
const perKey = 4;
const concurrency = 16;
/** The jobs of a key that has as many under way come again so far apart, however many they are, within a bound. */
const apartMs = 20;
const longestWaitMs = 30_000;

/** Consumes the jobs of sandbox keys, in the api: they need no worker. The jobs of one key leave room for those of others. */
@Processor(queueNames.sandbox, {
  autorun: false,
  concurrency,
  lockDuration: 15_000,
  stalledInterval: 5_000,
  maxStalledCount: 10,
  runRetryDelay: 1000,
  removeOnComplete: { count: 100 },
  removeOnFail: { count: 1000 },
})
export class SandboxProcessor extends WorkerHost implements OnApplicationBootstrap {
  /** Of each key with jobs under way: how many, and when the last of those that were put off comes again. */
  private readonly keys = new Map<string, { running: number; nextAt: number }>();

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
    const { taskId } = job.data;
    const ownerId = await this.sandbox.ownerOf(taskId);
    if (ownerId === undefined) return;
    const key = this.keys.get(ownerId) ?? { running: 0, nextAt: 0 };
    const now = Date.now();
    if (key.running >= perKey) {
      key.nextAt = Math.min(Math.max(key.nextAt, now) + apartMs, now + longestWaitMs);
      return putOff(job, key.nextAt, token);
    }
    this.keys.set(ownerId, key);
    key.running++;
    try {
      const { waitMs } = await this.sandbox.settle(taskId, job.timestamp);
      if (waitMs !== undefined) await putOff(job, Date.now() + waitMs, token);
    } finally {
      if (--key.running === 0) this.keys.delete(ownerId);
    }
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

/** Lets the same job come again. */
async function putOff(job: Job, at: number, token?: string): Promise<never> {
  await job.moveToDelayed(at, token);
  throw new DelayedError();
}
