import { setMaxListeners } from 'node:events';
import { ClockWatch } from '@app/database';
import { type DrawingTask, FinetunePrompt, Generation, type Metadata, readSandboxOrder, type Task } from '@app/domain';
import { JsonLogger } from '@app/observability';
import { WakeUps } from '@app/queue';
import { ClaimLoop, Tasks, Trainings } from '@app/tasks';
import { type BeforeApplicationShutdown, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { DrawingService } from '../drawing/drawing.service';
import { FailureService } from '../drawing/failure.service';
import { Places } from '../drawing/places';
import { ProgressPublisher } from '../drawing/progress-publisher';
import { SourcePictures } from '../drawing/source-pictures';
import { StopListener } from '../drawing/stop-listener';
import { TrainingStore } from '../training/training-store';
import { PictureStore } from '../pictures/picture-store';
import { StorageRoom } from '../pictures/storage-room';
import { SandboxEngine, sandboxName } from './sandbox-engine';
import { SandboxTraining } from './sandbox-training';

/** Tasks that are drawn, or wait as they asked, at once. Some are left for keys that have none yet. */
const places = 64;

/** Draws, and pretends to train, the tasks of sandbox keys with the code that draws all others, beside the engines and without a place there. */
@Injectable()
export class SandboxLoop implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly loop: ClaimLoop;
  private readonly places = new Places({
    all: [{ device: 'cpu', loadedKeys: new Set<string>() }],
    placesOfEngine: places,
  });
  private readonly drawings: DrawingService;
  private readonly training: SandboxTraining;
  private readonly shutdown = new AbortController();

  constructor(
    private readonly dataSource: DataSource,
    private readonly tasks: Tasks,
    private readonly clock: ClockWatch,
    private readonly wakeUps: WakeUps,
    private readonly logger: JsonLogger,
    failures: FailureService,
    pictures: PictureStore,
    progress: ProgressPublisher,
    stops: StopListener,
    sources: SourcePictures,
    private readonly trainings: Trainings,
    store: TrainingStore,
    private readonly room: StorageRoom,
  ) {
    setMaxListeners(0, this.shutdown.signal);
    const source = { key: sandboxName, name: sandboxName, folder: '', hash: '' };
    const models = {
      resolve: async () => ({ source, adapters: [], servedBy: sandboxName, refusedOn: [] }),
      errorAfterRefusal: async (error: Error) => error,
    };
    const upscalers = { plainName: sandboxName, find: async () => undefined };
    const metrics = { drawingEnded: () => undefined };
    this.drawings = new DrawingService(
      tasks,
      models,
      upscalers,
      pictures,
      progress,
      stops,
      failures,
      this.places,
      metrics,
      logger,
      sources,
    );
    this.training = new SandboxTraining({ dataSource, tasks, trainings, store, stops, progress, failures, logger });
    this.loop = new ClaimLoop(
      () => this.claim(),
      ({ message }) => logger.warnSparingly('no sandbox task could be claimed', { reason: message }),
    );
  }

  onApplicationBootstrap(): void {
    this.wakeUps.listen(() => this.loop.look());
    this.loop.start();
  }

  /** Gives back what is being drawn: it is drawn again in a moment, wherever that is. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.loop.stop();
    this.shutdown.abort();
    await this.loop.finished();
  }

  private async claim(): Promise<boolean> {
    if (!this.places.hasRoom || !this.clock.agrees || !(await this.room.isOpen())) return false;
    const wanted = { sandbox: true, except: this.places.full };
    const task = await this.tasks.claim(wanted);
    if (task) this.begin(task, this.draw(task));
    const training = this.places.hasRoom ? await this.trainings.claim(wanted) : undefined;
    if (training) this.begin(training, this.training.run(training, this.shutdown.signal));
    return task !== undefined || training !== undefined;
  }

  private begin(task: Task, work: Promise<void>): void {
    const giveBack = this.places.take(task.ownerId);
    this.loop.begin(
      work
        .catch((error: Error) => this.logger.error('a sandbox task was not settled', { taskId: task.id }, error))
        .finally(giveBack),
    );
  }

  private async draw(task: DrawingTask): Promise<void> {
    const { order } = readSandboxOrder(await this.metadataOf(task));
    const engine = new SandboxEngine({ ...order, createdAt: task.createdAt, promptChunks: task.promptChunks ?? 1 });
    await this.drawings.run(task, { engineFor: () => engine, giveBack: () => undefined }, this.shutdown.signal);
  }

  private async metadataOf({ id, kind }: DrawingTask): Promise<Metadata | null> {
    const record = kind === 'generation' ? Generation : FinetunePrompt;
    const found = await this.dataSource.manager.findOneBy<Generation | FinetunePrompt>(record, { id });
    return found?.metadata ?? null;
  }
}
