import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { ClockWatch } from '@app/database';
import type { ImageTask } from '@app/domain';
import { QueueConsumer } from '@app/queue';
import { SHUTDOWN_DEADLINE_MS } from '../shutdown-deadline';
import { ImageTaskLifeCycle, fatalCount, undrawableAfterMs } from '@app/tasks';
import { JsonLogger } from '@app/observability';
import { OneAtATime } from '@app/process';
import type { JobData } from '@app/queue';
import { queueNames } from '@app/queue';
import { Processor } from '@nestjs/bullmq';
import type { BeforeApplicationShutdown, OnApplicationBootstrap } from '@nestjs/common';
import { Inject } from '@nestjs/common';
import type { Job } from 'bullmq';
import { DelayedError, WaitingError } from 'bullmq';
import { DrawingGate } from './drawing-gate';
import { DrawingService } from './drawing.service';
import { FailureService } from './failure.service';
import { KnownWeights } from './known-weights';
import { OwnerPlaces } from './owner-places';
import { WorkerModels } from './worker-models';
import type { EngineLoan } from '../engine/engines';
import { Engines } from '../engine/engines';

/** How long a ticket waits here for a place; then another worker gets it, which may have a free one. */
const loanWaitMs = 250;
/**
 * After that, how long no other ticket is fetched unless a place becomes free. Both together are less
 * than half of a job's lock.
 */
const pauseMs = 1_000;
/**
 * How long a place pauses if what waits is not for this worker now: `each` for every place that pauses at the time,
 * so that the places of a worker ask one after another, and one of them soon. Like the pause above, less
 * than half of a job's lock.
 */
const leaveMs = { each: 200, most: 1_500 };
/** Every eighth claim goes by turn alone, without regard to what is loaded. */
const plainClaim = 8;

/**
 * Tasks, in parts of the engines' places, that a worker has at a time: some wait for a place while the pictures
 * of others are encoded.
 */
const tasksPerPlace = 4 / 3;

const sentences = {
  ended: 'the queue is no longer consumed',
  connectionFailed: 'the drawing queue failed',
  jobFailed: 'a job failed; its task is not lost, the sweeper adds another',
};

/** Consumes the drawing jobs: for each it claims the next task in turn and draws it. */
@Processor(queueNames.images, {
  autorun: false,
  // The heartbeats decide who owns a task; this only decides when the queue gives a dead worker's ticket to another.
  lockDuration: 5_000,
  // The first check marks a job without a lock, the next one takes it.
  stalledInterval: 1_500,
  // Higher than a task's attempts: a task that kills its workers is failed here, with a message to its owner.
  maxStalledCount: 2 * fatalCount,
  runRetryDelay: 1_500,
  removeOnComplete: { count: 100 },
  removeOnFail: { count: 1_000 },
})
export class DrawingProcessor
  extends QueueConsumer<JobData['images']>
  implements OnApplicationBootstrap, BeforeApplicationShutdown
{
  private readonly shutdown = new AbortController();
  private readonly stopping = new AbortController();
  private stopConsuming = (): void => undefined;
  private readonly owners: OwnerPlaces;
  private readonly claiming = new OneAtATime();
  private claims = 0;
  private pausing = 0;

  constructor(
    clock: ClockWatch,
    private readonly engines: Engines,
    private readonly lifeCycle: ImageTaskLifeCycle,
    private readonly drawings: DrawingService,
    private readonly failures: FailureService,
    private readonly gate: DrawingGate,
    private readonly models: WorkerModels,
    private readonly weights: KnownWeights,
    logger: JsonLogger,
    @Inject(SHUTDOWN_DEADLINE_MS) private readonly deadlineMs: number,
  ) {
    super(sentences, clock, logger);
    // Every task and every pause listens, and there are more places than Node expects.
    setMaxListeners(0, this.stopping.signal, this.shutdown.signal);
    this.owners = new OwnerPlaces(engines.places.count);
  }

  onApplicationBootstrap(): void {
    this.worker.concurrency = Math.floor(this.engines.places.count * tasksPerPlace);
    this.stopConsuming = this.consume();
  }

  override async process(job: Job<JobData['images']>, token?: string): Promise<void> {
    const loan = await this.engines.places.borrow(loanWaitMs);
    if (!loan) {
      await job.moveToWait(token);
      (await this.engines.places.borrow(pauseMs))?.giveBack();
      throw new WaitingError();
    }
    try {
      if (this.stopping.signal.aborted || !this.clock.agrees || this.engines.isStalled) {
        await job.moveToWait(token);
        throw new WaitingError();
      }
      const claimed = await this.claiming.run(() => this.claim(job.id ?? '', loan));
      if (!claimed) return await this.leaveToOthers(job, token, loan);
      const { claim, wanted, drawing } = claimed;
      if (claim.kind === 'wait' && claim.forOthers) void this.models.refreshUnlessJustRead();
      // Another worker may have room for these owners or the models, and this one has as soon as a task
      // of the owners is stored.
      if (claim.kind === 'wait' && (claim.forOthers || wanted.except.length > 0))
        return await this.leaveToOthers(job, token, loan);
      if (claim.kind === 'wait') {
        await job.moveToDelayed(Date.now() + claim.retryMs, token);
        throw new DelayedError();
      }
      await drawing;
    } finally {
      loan.giveBack();
    }
  }

  /**
   * Claims the next task and begins to draw it, unless one is drawn alone or waits for that. Claims run one after the
   * other: several at a time would each see room. A task that is begun counts for its owner, and closes the gate if it
   * is to be drawn alone; so it is begun before the next claim.
   */
  private async claim(ticket: string, loan: EngineLoan) {
    if (this.gate.isClosed) return undefined;
    const wanted = this.wanted();
    const claim = await this.lifeCycle.claimDue(ticket, wanted);
    const drawing = claim.kind === 'claimed' ? this.drawOrFail(claim.task, loan) : undefined;
    return { claim, wanted, drawing };
  }

  /** What the engines with a place free can draw now, and what they have loaded. */
  private wanted() {
    const { freeDevices, loadedKeys } = this.engines.places;
    // Now and then it is simply the next owner's turn, so that no number of owners whose models are
    // loaded can starve one.
    const isPlain = ++this.claims % plainClaim === 0;
    return {
      except: this.owners.full,
      models: this.models.drawableOn(freeDevices),
      loaded: isPlain ? [] : this.weights.drawnWith(loadedKeys),
      undrawable: this.clock.contact.heldMs > undrawableAfterMs,
    };
  }

  /**
   * Puts the ticket back, so that another worker gets it, and pauses; for longer, the more places do so.
   * @throws WaitingError
   */
  private async leaveToOthers(job: Job, token: string | undefined, loan: EngineLoan): Promise<never> {
    await job.moveToWait(token);
    loan.giveBack();
    this.pausing++;
    const ms = Math.min(leaveMs.most, leaveMs.each * this.pausing);
    await delay(ms, undefined, { signal: this.stopping.signal }).catch(() => undefined);
    this.pausing--;
    throw new WaitingError();
  }

  private async drawOrFail(task: ImageTask, loan: EngineLoan): Promise<void> {
    const giveBack = this.owners.take(task.ownerId);
    try {
      if (task.deaths >= fatalCount) await this.failures.failAfterWorkerDeaths(task);
      else await this.drawings.run(task, loan, this.shutdown.signal);
    } finally {
      giveBack();
    }
  }

  /** Stops claiming, lets current drawings finish within the deadline, and gives the others back. */
  async beforeApplicationShutdown(): Promise<void> {
    this.stopping.abort();
    this.stopConsuming();
    await this.worker.pause(true);
    const finished = this.worker.close();
    const deadline = new AbortController();
    await Promise.race([finished, delay(this.deadlineMs, undefined, { signal: deadline.signal, ref: false })]);
    deadline.abort();
    this.shutdown.abort();
    await finished;
  }
}
