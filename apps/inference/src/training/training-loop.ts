import { type Config, CONFIG } from '@app/config';
import { ClockWatch } from '@app/database';
import { JsonLogger } from '@app/observability';
import { WakeUps } from '@app/queue';
import { ClaimLoop, Tasks, Trainings, undrawableAfterMs } from '@app/tasks';
import { type BeforeApplicationShutdown, Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { WorkerModels } from '../drawing/worker-models';
import { Engines } from '../engines/engines';
import { TrainingService } from './training.service';

/** Claims the next training in turn, and trains it. A worker has one at a time: two would only halve each other. */
@Injectable()
export class TrainingLoop implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly loop: ClaimLoop;
  private readonly shutdown = new AbortController();

  constructor(
    private readonly clock: ClockWatch,
    private readonly wakeUps: WakeUps,
    private readonly engines: Engines,
    private readonly tasks: Tasks,
    private readonly trainings: Trainings,
    private readonly service: TrainingService,
    private readonly models: WorkerModels,
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
    if (this.loop.begun > 0 || !this.clock.agrees) return false;
    const models = this.models.drawableOn(this.engines.devices);
    const task = await this.trainings.claim({ models, undrawable: this.clock.contact.heldMs > undrawableAfterMs });
    if (task)
      this.loop.begin(
        this.service
          .run(task, this.shutdown.signal)
          // Its heartbeats have ended, so the sweep finds it.
          .catch((error: Error) => this.logger.error('the outcome could not be written', { taskId: task.id }, error)),
      );
    else if (await this.tasks.hasTaskForOtherModels(models, 'training')) void this.models.refreshUnlessJustRead();
    return task !== undefined;
  }
}
