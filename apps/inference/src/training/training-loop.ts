import { type Config, CONFIG } from '@app/config';
import { ClockWatch } from '@app/database';
import type { TrainingTask } from '@app/domain';
import { JsonLogger } from '@app/observability';
import { WakeUps } from '@app/queue';
import { ClaimLoop, Tasks, Trainings, undrawableAfterMs } from '@app/tasks';
import { type BeforeApplicationShutdown, Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { Places } from '../drawing/places';
import { WorkerModels } from '../drawing/worker-models';
import { StorageRoom } from '../pictures/storage-room';
import { Engines } from '../engine-client/engines';
import { TrainingService } from './training.service';

/** Trainings of which a worker reads pictures, or that wait for the one that it trains: three places have room for four. */
const readingPlaces = 3;
/** Pictures that take longer keep nobody waiting: the next training in turn is begun too, and overtakes. */
const slowReadingMs = 5_000;

/**
 * Claims the next training in turn, and trains it. A worker trains one at a time: two would only halve each other. Pictures
 * are read before a training has that place, so that a slow server, or a picture that is slow to decode, holds up its own
 * training alone.
 */
@Injectable()
export class TrainingLoop implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly loop: ClaimLoop;
  private readonly shutdown = new AbortController();
  private readonly places = new Places({
    all: [{ device: 'cpu', loadedKeys: new Set<string>() }],
    placesOfEngine: readingPlaces,
  });
  private claimedAt = -Infinity;

  constructor(
    private readonly clock: ClockWatch,
    private readonly wakeUps: WakeUps,
    private readonly engines: Engines,
    private readonly tasks: Tasks,
    private readonly trainings: Trainings,
    private readonly service: TrainingService,
    private readonly models: WorkerModels,
    private readonly room: StorageRoom,
    private readonly logger: JsonLogger,
    @Inject(CONFIG) private readonly config: Config,
  ) {
    this.loop = new ClaimLoop(
      () => this.claim(),
      ({ message }) => logger.warnSparingly('no training could be claimed', { reason: message }),
    );
  }

  onApplicationBootstrap(): void {
    if (!this.config.workerKinds.includes('training')) return;
    this.wakeUps.listen(() => this.loop.look());
    this.loop.start();
  }

  /** Gives the training back: with its last step, if that ends in time. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.loop.stop();
    this.shutdown.abort();
    await this.loop.finished();
  }

  private async claim(): Promise<boolean> {
    if (!this.hasRoom || !this.clock.agrees || !(await this.room.isOpen())) return false;
    const models = this.models.drawableOn(this.engines.devices);
    const undrawable = this.clock.contact.heldMs > undrawableAfterMs;
    const task = await this.trainings.claim({ models, except: this.places.full, undrawable });
    if (task) this.begin(task);
    else if (await this.tasks.hasTaskForOtherModels(models, 'training')) void this.models.refreshUnlessJustRead();
    return task !== undefined;
  }

  /** Whether nothing is trained here, and what was claimed last has not read its pictures in good time. */
  private get hasRoom(): boolean {
    if (this.loop.begun === 0) return true;
    return this.places.hasRoom && performance.now() - this.claimedAt > slowReadingMs;
  }

  private begin(task: TrainingTask): void {
    this.claimedAt = performance.now();
    const leave = this.places.take(task.ownerId);
    this.loop.begin(
      this.service
        .run(task, this.places, this.shutdown.signal)
        // Its heartbeats have ended, so the sweep finds it.
        .catch((error: Error) => this.logger.error('the outcome could not be written', { taskId: task.id }, error))
        .finally(leave),
    );
  }
}
