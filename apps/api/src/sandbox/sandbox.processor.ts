import { ClockWatch } from '@app/database';
import { JsonLogger } from '@app/observability';
import type { JobData } from '@app/queue';
import { queueNames } from '@app/queue';
import { Processor } from '@nestjs/bullmq';
import type { Job } from 'bullmq';
import { QueueProcessor } from '../http/queue.processor';
import { Drain } from '../http/drain';
import { SandboxService } from './sandbox.service';

/** Parallel jobs, per key and in total. */
const perKey = 4;
const concurrency = 16;
/** Interval at which the jobs of a busy key come again one after the other, however many there are, up to a maximum. */
const apartMs = 20;
const longestWaitMs = 30_000;

/**
 * Consumes the jobs of sandbox keys, in the api: they need no worker. The jobs of one key leave
 * room for those of others.
 */
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
export class SandboxProcessor extends QueueProcessor<JobData['sandbox']> {
  /** For each key with running jobs: their number, and when the last postponed one comes again. */
  private readonly keys = new Map<string, { running: number; nextAt: number }>();

  constructor(
    private readonly sandbox: SandboxService,
    clock: ClockWatch,
    drain: Drain,
    logger: JsonLogger,
  ) {
    const sentences = {
      ended: 'the sandbox queue is no longer consumed',
      connectionFailed: 'sandbox queue failed',
      jobFailed: 'a sandbox job failed, the sweeper will add another',
    };
    super(sentences, clock, drain, logger);
  }

  protected override async run({ data: { taskId }, timestamp }: Job<JobData['sandbox']>): Promise<number | undefined> {
    const ownerId = await this.sandbox.ownerOf(taskId);
    if (ownerId === undefined) return undefined;
    const key = this.keys.get(ownerId) ?? { running: 0, nextAt: 0 };
    const now = Date.now();
    if (key.running >= perKey) {
      key.nextAt = Math.min(Math.max(key.nextAt, now) + apartMs, now + longestWaitMs);
      return key.nextAt;
    }
    this.keys.set(ownerId, key);
    key.running++;
    try {
      const { waitMs } = await this.sandbox.settle(taskId, timestamp);
      return waitMs === undefined ? undefined : Date.now() + waitMs;
    } finally {
      if (--key.running === 0) this.keys.delete(ownerId);
    }
  }
}
