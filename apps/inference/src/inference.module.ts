import { type Config, ConfigModule } from '@app/config';
import { DatabaseModule } from '@app/database';
import { TasksModule } from '@app/tasks';
import { QueueModule } from '@app/queue';
import { SHUTDOWN_DEADLINE_MS } from './shutdown-deadline';
import { StorageModule } from '@app/storage';
import { ModelStore } from '@app/model-store';
import { PicturesModule } from '@app/pictures';
import { type JsonLogger, Metrics } from '@app/observability';
import {
  type BeforeApplicationShutdown,
  type DynamicModule,
  type FactoryProvider,
  Module,
  type OnApplicationShutdown,
} from '@nestjs/common';
import { BrokenModels } from './drawing/broken-models';
import { DrawingService } from './drawing/drawing.service';
import { FailureService } from './drawing/failure.service';
import { ModelResolver } from './drawing/model-resolver';
import { ProgressPublisher } from './drawing/progress-publisher';
import { SourcePictures } from './drawing/source-pictures';
import { StopListener } from './drawing/stop-listener';
import { WorkerModels } from './drawing/worker-models';
import { Upscalers } from './drawing/upscalers';
import { Engines } from './engine-client/engines';
import { DrawingLoop } from './drawing/drawing-loop';
import { ClaimingParts } from './drawing/claiming-loop';
import { EngineSlots } from './drawing/engine-slots';
import { TaskRunner } from './drawing/task-runner';
import { HealthServer } from './health/health-server';
import { WorkerPresence } from './health/worker-presence';
import { InferenceMetrics } from './metrics/inference-metrics';
import { StorageHealth } from './pictures/storage-health';
import { PictureCredentials } from './pictures/picture-credentials';
import { PictureModeration } from './pictures/picture-moderation';
import { PictureStore } from './pictures/picture-store';
import { SandboxLoop } from './sandbox/sandbox-loop';
import { TrainingLoop } from './training/training-loop';
import { TrainingPictures } from './training/training-pictures';
import { TrainingService } from './training/training.service';
import { TrainingStore } from './training/training-store';
import { FileSweeper } from './sweeper/file-sweeper';
import { Sweeper } from './sweeper/sweeper';

/** The inputs of the worker. */
export interface InferenceOptions {
  config: Config;
  databaseUrl: string;
  logger: JsonLogger;
  /** Compiled entry of the engine threads; tests name the one in `dist`. */
  threadFile?: string;
  /** Time for a drawing to finish after the process was asked to end; then it is given back. */
  shutdownDeadlineMs?: number;
  /** Called when an engine hangs: the process must end, because nothing else ends its thread. */
  onStall?: () => void;
  /** This machine's clock, in milliseconds since the epoch. */
  now?: () => number;
}

/**
 * The worker: claims tasks, draws or trains them (also those of sandbox keys), sweeps, and serves its health checks.
 */
@Module({})
export class InferenceModule implements BeforeApplicationShutdown, OnApplicationShutdown {
  static forRoot(options: InferenceOptions): DynamicModule {
    const { config, databaseUrl, logger, shutdownDeadlineMs = 6_000, now } = options;
    return {
      module: InferenceModule,
      imports: [
        ConfigModule.forRoot({ ...config, databaseUrl }, logger),
        DatabaseModule.forRoot({ applicationName: 'darkroom-inference', poolSize: 6 }),
        QueueModule.forRoot({ ...(now && { now }) }),
        StorageModule,
        TasksModule,
        PicturesModule,
      ],
      providers: [
        { provide: SHUTDOWN_DEADLINE_MS, useValue: shutdownDeadlineMs },
        { provide: Metrics, useFactory: () => new Metrics() },
        { provide: ModelStore, useFactory: () => new ModelStore(config.modelsDir) },
        engines(options),
        BrokenModels,
        ClaimingParts,
        DrawingService,
        EngineSlots,
        FailureService,
        FileSweeper,
        HealthServer,
        DrawingLoop,
        InferenceMetrics,
        ModelResolver,
        PictureCredentials,
        PictureModeration,
        PictureStore,
        ProgressPublisher,
        SandboxLoop,
        SourcePictures,
        TrainingLoop,
        TrainingPictures,
        TrainingService,
        TrainingStore,
        StopListener,
        StorageHealth,
        Sweeper,
        TaskRunner,
        Upscalers,
        WorkerModels,
        WorkerPresence,
      ],
    };
  }

  constructor(
    private readonly stops: StopListener,
    private readonly engines: Engines,
    private readonly health: HealthServer,
  ) {}

  beforeApplicationShutdown(): void {
    this.health.stop();
  }

  /**
   * The loops have released their tasks by now; closing the rest needs neither queue nor database, which
   * are closed after this.
   */
  async onApplicationShutdown(): Promise<void> {
    await this.engines.close();
    await this.stops.close();
    await this.health.close();
  }
}

function engines({ config, logger, threadFile, onStall }: InferenceOptions): FactoryProvider<Engines> {
  return {
    provide: Engines,
    inject: [InferenceMetrics],
    useFactory: (metrics: InferenceMetrics) =>
      Engines.start(config, logger, {
        ...(threadFile && { threadFile }),
        ...(onStall && { onStall }),
        onLoaded: (loaded, device) => metrics.modelLoaded(loaded, device),
        onStep: (step) => metrics.stepDone(step),
      }),
  };
}
