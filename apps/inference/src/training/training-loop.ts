import { type Config, CONFIG } from '@app/config';
import type { TrainingTask } from '@app/domain';
import { Tasks, Trainings, undrawableAfterMs } from '@app/tasks';
import { Inject, Injectable } from '@nestjs/common';
import { ClaimingLoop, ClaimingParts } from '../drawing/claiming-loop';
import { DrawingLock } from '../drawing/drawing-lock';
import { OwnerShares } from '../drawing/owner-shares';
import { WorkerModels } from '../drawing/worker-models';
import { Engines } from '../engine-client/engines';
import { TrainingService } from './training.service';

/**
 * Slots for trainings whose pictures are read, or that wait for the one that is trained. `OwnerShares` makes four
 * trainings of three slots.
 */
const slots = 3;
/** If pictures take longer to read, the next training in turn is begun too, and may overtake. */
const slowReadingMs = 5_000;

/**
 * Claims the next training in turn, and trains it. A worker trains one at a time: two would only halve each other.
 * Pictures are read before a training has the lock, so that a slow server or a picture slow to decode holds up its own
 * training alone.
 */
@Injectable()
export class TrainingLoop extends ClaimingLoop {
  private readonly lock = new DrawingLock();
  private claimedAt = -Infinity;

  constructor(
    parts: ClaimingParts,
    private readonly engines: Engines,
    private readonly models: WorkerModels,
    private readonly tasks: Tasks,
    private readonly trainings: Trainings,
    private readonly service: TrainingService,
    @Inject(CONFIG) { workerKinds }: Config,
  ) {
    super(parts, new OwnerShares(slots), workerKinds.includes('training'));
  }

  protected async claim(): Promise<boolean> {
    if (!this.mayBegin || !(await this.mayClaim())) return false;
    const models = this.models.trainableOn(this.engines.devices);
    const undrawable = this.parts.clock.contact.heldMs > undrawableAfterMs;
    const task = await this.trainings.claim({
      models,
      trainedOn: this.models.trainedOn,
      except: this.shares.full,
      undrawable,
    });
    if (task) this.begin(task);
    else if (await this.tasks.hasTaskForOtherModels(models, 'training')) void this.models.refreshUnlessJustRead();
    return task !== undefined;
  }

  /** Whether nothing is trained here, and what was claimed last has not read its pictures in good time. */
  private get mayBegin(): boolean {
    if (this.loop.tracked === 0) return true;
    return this.shares.hasFree && !this.lock.isTakenAlone && performance.now() - this.claimedAt > slowReadingMs;
  }

  private begin(task: TrainingTask): void {
    this.claimedAt = performance.now();
    this.track(task, this.service.run(task, this.lock, this.shutdown.signal), this.shares.take(task.ownerId));
  }
}
