import { setTimeout as delay } from 'node:timers/promises';
import type { ImageTask } from '@app/domain';
import { ImageTaskLifeCycle, maxAttempts } from '@app/image-tasks';
import { JsonLogger } from '@app/observability';
import type { JobData } from '@app/queue';
import { ClockWatch, queueNames } from '@app/queue';
import { OnWorkerEvent, Processor, WorkerHost } from '@nestjs/bullmq';
import type { BeforeApplicationShutdown, OnApplicationBootstrap } from '@nestjs/common';
import { Inject } from '@nestjs/common';
import type { Job } from 'bullmq';
import { DelayedError, WaitingError } from 'bullmq';
import { DrawingService } from './drawing/drawing.service';
import { FailureService } from './drawing/failure.service';
import { OwnerPlaces } from './drawing/owner-places';
import type { EngineLoan } from './engine/engines';
import { Engines } from './engine/engines';
import { SHUTDOWN_DEADLINE_MS } from './shutdown-deadline.token';

/** How long a ticket waits here for a place; then another worker gets it, which may have a free one. */
const loanWaitMs = 250;
/** After that, how long no other ticket is fetched unless a place becomes free. Both together are less than half of a job's lock. */
const pauseMs = 1_000;
/** How long a place pauses if only tasks of owners wait who have their share of the places. */
const fullPauseMs = 200;

/** The part of a worker's places that the tasks of one owner may take: the others are for whoever comes meanwhile. */
const shareOfOwner = 2 / 3;
/** Tasks, in parts of the engines' places, that a worker has at a time: some wait for a place while the pictures of others are encoded. */
const tasksPerPlace = 4 / 3;

/** Consumes the drawing jobs: for each it claims the next task in turn and draws it. */
@Processor(queueNames.images, {
  autorun: false,
  // The heartbeats decide who owns a task; this only decides when the queue gives a dead worker's ticket to another.
  lockDuration: 5_000,
  // The first check marks a job without a lock, the next one takes it.
  stalledInterval: 1_500,
  // Higher than a task's attempts: a task that kills its workers is failed here, with a message to its owner.
  maxStalledCount: 2 * maxAttempts,
  runRetryDelay: 1_500,
  removeOnComplete: { count: 100 },
  removeOnFail: { count: 1_000 },
})
export class GenerationProcessor extends WorkerHost implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly shutdown = new AbortController();
  private stopping = false;
  private removeConsumer = (): unknown => undefined;
  private readonly owners: OwnerPlaces;

  constructor(
    private readonly clock: ClockWatch,
    private readonly engines: Engines,
    private readonly lifeCycle: ImageTaskLifeCycle,
    private readonly drawings: DrawingService,
    private readonly failures: FailureService,
    private readonly logger: JsonLogger,
    @Inject(SHUTDOWN_DEADLINE_MS) private readonly deadlineMs: number,
  ) {
    super();
    this.owners = new OwnerPlaces(Math.floor(engines.places * shareOfOwner));
  }

  onApplicationBootstrap(): void {
    this.worker.concurrency = Math.floor(this.engines.places * tasksPerPlace);
    this.removeConsumer = this.clock.addConsumer(this.worker, (error) =>
      this.logger.error('the queue is no longer consumed', error),
    );
  }

  override async process(job: Job<JobData['images']>, token?: string): Promise<void> {
    const loan = await this.engines.borrow(loanWaitMs);
    if (!loan) {
      await job.moveToWait(token);
      (await this.engines.borrow(pauseMs))?.giveBack();
      throw new WaitingError();
    }
    try {
      if (this.stopping || !this.clock.agrees || loan.engine.isStalled) {
        await job.moveToWait(token);
        throw new WaitingError();
      }
      const full = this.owners.full;
      const claim = await this.lifeCycle.claimDue(job.id ?? '', full);
      if (claim.kind === 'wait' && full.length > 0) {
        // Another worker may have room for these owners, and this one has as soon as a task of theirs is stored.
        await job.moveToWait(token);
        loan.giveBack();
        await delay(fullPauseMs);
        throw new WaitingError();
      }
      if (claim.kind === 'wait') {
        await job.moveToDelayed(Date.now() + claim.retryMs, token);
        throw new DelayedError();
      }
      if (claim.kind === 'none') return;
      await this.finish(claim.task, loan);
    } finally {
      loan.giveBack();
    }
  }

  private async finish(task: ImageTask, loan: EngineLoan): Promise<void> {
    const giveBack = this.owners.take(task.ownerId);
    try {
      if (task.deaths >= maxAttempts) await this.failures.failAfterWorkerDeaths(task);
      else await this.drawings.run(task, loan, this.shutdown.signal);
    } finally {
      giveBack();
    }
  }

  /** Stops claiming, lets current drawings finish within the deadline, and gives the others back. */
  async beforeApplicationShutdown(): Promise<void> {
    this.stopping = true;
    this.removeConsumer();
    await this.worker.pause(true);
    const finished = this.worker.close();
    const deadline = new AbortController();
    await Promise.race([finished, delay(this.deadlineMs, undefined, { signal: deadline.signal, ref: false })]);
    deadline.abort();
    this.shutdown.abort();
    await finished;
  }

  @OnWorkerEvent('error')
  onError(error: Error): void {
    this.logger.warnSparingly('the drawing queue failed', { reason: error.message });
  }

  @OnWorkerEvent('failed')
  onFailed(job: Job<JobData['images']> | undefined, error: Error): void {
    this.logger.error('a job failed, the sweeper will add another', { taskId: job?.data.taskId }, error);
  }
}
