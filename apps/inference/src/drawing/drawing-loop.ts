import { setTimeout as delay } from 'node:timers/promises';
import { type Config, CONFIG } from '@app/config';
import type { DrawingTask } from '@app/domain';
import { Tasks, undrawableAfterMs } from '@app/tasks';
import { Inject, Injectable } from '@nestjs/common';
import { Engines } from '../engine-client/engines';
import { InferenceMetrics } from '../metrics/inference-metrics';
import { SHUTDOWN_DEADLINE_MS } from '../shutdown-deadline';
import { ClaimingLoop, ClaimingParts } from './claiming-loop';
import { DrawingLock } from './drawing-lock';
import { DrawingService, type DrawingSlot } from './drawing.service';
import { EngineSlots, type Slot } from './engine-slots';
import { OwnerShares } from './owner-shares';
import { SlotQueue } from './slot-queue';
import { hasPictures } from './source-pictures';
import { WorkerModels } from './worker-models';

/** Every eighth claim goes by turn alone, without regard to what is loaded. */
const plainClaim = 8;

/** Claims the next task in turn whenever there is a slot for it, and draws it. */
@Injectable()
export class DrawingLoop extends ClaimingLoop {
  private readonly lock = new DrawingLock();
  private readonly queue: SlotQueue;
  private claims = 0;

  constructor(
    parts: ClaimingParts,
    private readonly engines: Engines,
    private readonly slots: EngineSlots,
    private readonly models: WorkerModels,
    private readonly tasks: Tasks,
    private readonly drawings: DrawingService,
    private readonly metrics: InferenceMetrics,
    @Inject(SHUTDOWN_DEADLINE_MS) private readonly deadlineMs: number,
    @Inject(CONFIG) { workerKinds }: Config,
  ) {
    super(parts, new OwnerShares(slots.count), workerKinds.includes('drawing'));
    this.queue = new SlotQueue(this.shares, () => this.loop.wake());
  }

  /** Lets current drawings finish within the deadline, and gives the others back after it. */
  override async beforeApplicationShutdown(): Promise<void> {
    await this.loop.stop();
    this.queue.stop();
    const deadline = new AbortController();
    const late = delay(this.deadlineMs, undefined, { signal: deadline.signal, ref: false });
    await Promise.race([this.loop.finished(), late]);
    deadline.abort();
    await super.beforeApplicationShutdown();
  }

  /** Begins to draw at once, so that the next claim sees what is left. */
  protected async claim(): Promise<boolean> {
    if (!this.shares.hasFree || this.lock.isTakenAlone || !this.parts.clock.agrees || this.engines.isStalled)
      return false;
    const slot = this.slots.take();
    if (!slot) return false;
    if (this.queue.giveTo(slot)) return true;
    let task: DrawingTask | undefined;
    try {
      if (await this.mayDraw()) task = await this.claimTask();
    } finally {
      if (!task) slot.giveBack();
    }
    if (task && hasPictures(task)) this.beginLater(task, slot);
    else if (task) this.begin(task, slot);
    return task !== undefined;
  }

  private async claimTask(): Promise<DrawingTask | undefined> {
    const { freeDevices, loadedKeys } = this.slots;
    const models = this.models.drawableOn(freeDevices);
    // Now and then it is simply the next owner's turn, so that no number of owners whose models are
    // loaded can starve one.
    const isPlain = ++this.claims % plainClaim === 0;
    const task = await this.tasks.claim({
      except: [...this.shares.full, ...this.queue.full],
      models,
      loaded: isPlain ? [] : this.models.drawnWith(loadedKeys),
      undrawable: this.parts.clock.contact.heldMs > undrawableAfterMs,
    });
    if (!task && (await this.tasks.hasTaskForOtherModels(models))) void this.models.refreshUnlessJustRead();
    return task;
  }

  private begin(task: DrawingTask, { engineFor, giveBack }: Slot): void {
    const endShare = this.shares.take(task.ownerId);
    const free = (): void => {
      giveBack();
      this.loop.wake();
    };
    this.draw(task, { engineFor, giveBack: free, lock: this.lock }, () => {
      endShare();
      free();
    });
  }

  /** Reads its pictures without a slot, which a slow address would hold, and draws it once a slot is free. */
  private beginLater(task: DrawingTask, claimedWith: Slot): void {
    claimedWith.giveBack();
    const queued = this.queue.enter(task.ownerId);
    this.draw(task, { ...queued, lock: this.lock }, queued.leave);
  }

  private draw(task: DrawingTask, slot: DrawingSlot, end: () => void): void {
    const drawn = this.drawings
      .run(task, slot, this.shutdown.signal)
      .then(({ ending, seconds }) => this.metrics.drawingEnded(ending, seconds));
    this.track(task, drawn, end);
  }
}
