import type { Config } from '@app/config';
import { ConfigModule, DatabaseModule, ImageTasksModule, QueueModule, StorageModule } from '@app/foundation';
import { ModelStore } from '@app/model-store';
import type { JsonLogger } from '@app/observability';
import { Metrics } from '@app/observability';
import { BullModule } from '@nestjs/bullmq';
import type { BeforeApplicationShutdown, DynamicModule, OnApplicationShutdown } from '@nestjs/common';
import { Module } from '@nestjs/common';
import { BrokenModels } from './drawing/broken-models';
import { DrawingGate } from './drawing/drawing-gate';
import { DrawingService } from './drawing/drawing.service';
import { FailureService } from './drawing/failure.service';
import { KnownWeights } from './drawing/known-weights';
import { ModelResolver } from './drawing/model-resolver';
import { ProgressPublisher } from './drawing/progress-publisher';
import { StopListener } from './drawing/stop-listener';
import { Upscalers } from './drawing/upscalers';
import { WorkerModels } from './drawing/worker-models';
import { Engines } from './engine/engines';
import { DrawingProcessor } from './drawing.processor';
import { HealthServer } from './health/health-server';
import { healthServer } from './health/health-server.provider';
import { WorkerPresence } from './health/worker-presence';
import { InferenceMetrics } from './metrics/inference-metrics';
import { PictureStore } from './pictures/picture-store';
import { SHUTDOWN_DEADLINE_MS } from './shutdown-deadline.token';
import { FileSweeper } from './sweeper/file-sweeper';
import { Sweeper } from './sweeper/sweeper';
import { TaskSweeper } from './sweeper/task-sweeper';

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

/** The worker: consumes the drawing queue, sweeps, and serves its health checks. */
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
        ImageTasksModule,
        // Only for the processor, without a queue of its own: jobs are added in transactions.
        BullModule.registerQueue(),
      ],
      providers: [
        { provide: SHUTDOWN_DEADLINE_MS, useValue: shutdownDeadlineMs },
        { provide: Metrics, useFactory: () => new Metrics() },
        { provide: ModelStore, useFactory: () => new ModelStore(config.modelsDir) },
        {
          provide: Engines,
          inject: [InferenceMetrics],
          useFactory: (metrics: InferenceMetrics) => startEngines(options, metrics),
        },
        {
          provide: WorkerModels,
          inject: [ModelStore, BrokenModels],
          useFactory: (store: ModelStore, broken: BrokenModels) => listModels(options, store, broken),
        },
        { provide: StopListener, useFactory: () => listenForStops(options) },
        healthServer,
        BrokenModels,
        DrawingGate,
        DrawingService,
        FailureService,
        FileSweeper,
        DrawingProcessor,
        InferenceMetrics,
        KnownWeights,
        ModelResolver,
        PictureStore,
        ProgressPublisher,
        Sweeper,
        TaskSweeper,
        Upscalers,
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

  /** The processor has given its tasks back by now; closing the rest needs neither queue nor database, which are closed after this. */
  async onApplicationShutdown(): Promise<void> {
    await this.engines.close();
    await this.stops.close();
    await this.health.close();
  }
}

async function listModels(
  { config, logger }: InferenceOptions,
  store: ModelStore,
  broken: BrokenModels,
): Promise<WorkerModels> {
  const models = new WorkerModels(store, config, logger, broken);
  // The first listing reads every graph, so it happens now and not while pictures are drawn.
  await models
    .refresh()
    .catch((error: Error) => logger.warn('the models could not be listed', { reason: error.message }));
  return models;
}

function startEngines(
  { config, logger, threadFile, onStall }: InferenceOptions,
  metrics: InferenceMetrics,
): Promise<Engines> {
  return Engines.start(config, logger, {
    ...(threadFile && { threadFile }),
    ...(onStall && { onStall }),
    onLoaded: (loaded, device) => metrics.modelLoaded(loaded, device),
    onStep: (step) => metrics.stepDone(step),
  });
}

async function listenForStops({ databaseUrl, logger }: InferenceOptions): Promise<StopListener> {
  const stops = new StopListener(databaseUrl, logger);
  await stops.start();
  return stops;
}
