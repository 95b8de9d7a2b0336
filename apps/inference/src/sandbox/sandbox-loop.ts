import { setMaxListeners } from 'node:events';
import { ClockWatch } from '@app/database';
import { type DrawingTask, FinetunePrompt, Generation, type Metadata, readSandboxOrder } from '@app/domain';
import { JsonLogger } from '@app/observability';
import { WakeUps } from '@app/queue';
import { ClaimLoop, Tasks } from '@app/tasks';
import { type BeforeApplicationShutdown, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { DrawingService } from '../drawing/drawing.service';
import { FailureService } from '../drawing/failure.service';
import { Places } from '../drawing/places';
import { ProgressPublisher } from '../drawing/progress-publisher';
import { SourcePictures } from '../drawing/source-pictures';
import { StopListener } from '../drawing/stop-listener';
import { PictureStore } from '../pictures/picture-store';
import { SandboxEngine, sandboxName } from './sandbox-engine';

/** Tasks that are drawn, or wait as they asked, at once. Some are left for keys that have none yet. */
const places = 64;

/** Draws the tasks of sandbox keys with the code that draws all others, beside the engines and without a place there. */
@Injectable()
export class SandboxLoop implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly loop: ClaimLoop;
  private readonly places = new Places({
    all: [{ device: 'cpu', loadedKeys: new Set<string>() }],
    placesOfEngine: places,
  });
  private readonly drawings: DrawingService;
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
    if (!this.places.hasRoom || !this.clock.agrees) return false;
    const task = await this.tasks.claim({ sandbox: true, except: this.places.full });
    if (task) this.begin(task);
    return task !== undefined;
  }

  private begin(task: DrawingTask): void {
    const giveBack = this.places.take(task.ownerId);
    this.loop.begin(
      this.draw(task)
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
