import type { Config } from '@app/config';
import { createDataSource, probeWrite, statementTimeoutMs } from '@app/database';
import { ImageTaskLifeCycle } from '@app/image-tasks';
import { ModelStore } from '@app/model-store';
import { JsonLogger, Metrics, remembering } from '@app/observability';
import type { JobBackEnd } from '@app/queue';
import { ClockWatch, databaseNow, openJobBackEnd, queueConnection, Transactions } from '@app/queue';
import type { ImageStorage } from '@app/storage';
import { openImageStorage } from '@app/storage';
import { BullModule } from '@nestjs/bullmq';
import type { BeforeApplicationShutdown, DynamicModule, OnApplicationShutdown } from '@nestjs/common';
import { Inject, Module } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { DrawingService } from './drawing/drawing.service';
import { FailureService } from './drawing/failure.service';
import { ModelResolver } from './drawing/model-resolver';
import { ProgressPublisher } from './drawing/progress-publisher';
import { StopListener } from './drawing/stop-listener';
import { Upscalers } from './drawing/upscalers';
import { Engines } from './engine/engines';
import { GenerationProcessor } from './generation.processor';
import { HealthServer } from './health/health-server';
import { InferenceMetrics } from './metrics/inference-metrics';
import { WorkerPresence } from './health/worker-presence';
import { PictureStore } from './pictures/picture-store';
import { FileSweeper } from './sweeper/file-sweeper';
import { Sweeper } from './sweeper/sweeper';
import { TaskSweeper } from './sweeper/task-sweeper';
import { CONFIG, IMAGE_STORAGE, JOB_BACK_END, SHUTDOWN_DEADLINE_MS } from './tokens';

/** What the worker is built from. */
export interface InferenceOptions {
  config: Config;
  databaseUrl: string;
  logger: JsonLogger;
  /** Compiled entry of the engine threads; tests name the one in `dist`. */
  threadFile?: string;
  /** What a drawing may take to finish once the process is asked to end; then it is given back. */
  shutdownDeadlineMs?: number;
  /** An engine hangs: the process is to end, for nothing else ends its thread. */
  onStall?: () => void;
  /** This machine's clock, in milliseconds since the epoch. */
  now?: () => number;
}

/** Writing to a remote store to see whether it can be written costs something. */
const storageCheckMs = 15_000;
/** However many ask, the database is written once in a while. */
const databaseCheckMs = 1_000;

/** The GPU worker: consumes the queue of drawings, sweeps, and answers for its health. */
@Module({})
export class InferenceModule implements BeforeApplicationShutdown, OnApplicationShutdown {
  constructor(
    @Inject(JOB_BACK_END) private readonly jobs: JobBackEnd,
    private readonly dataSource: DataSource,
    private readonly stops: StopListener,
    private readonly engines: Engines,
    private readonly health: HealthServer,
    private readonly clock: ClockWatch,
  ) {}

  static forRoot(options: InferenceOptions): DynamicModule {
    const { config, databaseUrl, logger, threadFile, shutdownDeadlineMs = 6_000, now, onStall } = options;
    return {
      module: InferenceModule,
      imports: [
        BullModule.forRoot({ connection: queueConnection(config, databaseUrl).connection }),
        BullModule.registerQueue(),
      ],
      providers: [
        { provide: CONFIG, useValue: config },
        { provide: SHUTDOWN_DEADLINE_MS, useValue: shutdownDeadlineMs },
        { provide: JsonLogger, useValue: logger },
        { provide: Metrics, useFactory: () => new Metrics() },
        InferenceMetrics,
        {
          provide: DataSource,
          useFactory: () =>
            createDataSource(databaseUrl, {
              applicationName: 'darkroom-inference',
              poolSize: 6,
              statementTimeoutMs,
            }).initialize(),
        },
        {
          provide: JOB_BACK_END,
          useFactory: () =>
            openJobBackEnd(config, databaseUrl, ({ message }) =>
              logger.warnSparingly('the queue failed', { reason: message }),
            ),
        },
        {
          provide: Transactions,
          inject: [DataSource, JOB_BACK_END],
          useFactory: (dataSource: DataSource, jobs: JobBackEnd) =>
            new Transactions(dataSource, jobs, (error) =>
              logger.warnSparingly('a job is left to the sweeper', { reason: String(error) }),
            ),
        },
        {
          provide: ImageTaskLifeCycle,
          inject: [Transactions],
          useFactory: (transactions: Transactions) => new ImageTaskLifeCycle(transactions, config.maxConcurrentPerKey),
        },
        { provide: IMAGE_STORAGE, useFactory: () => openImageStorage(config) },
        {
          provide: ModelStore,
          useFactory: async () => {
            const store = new ModelStore(config.modelsDir);
            // The first look reads every graph, which is for now and not for while pictures are drawn.
            await store
              .list()
              .catch((error: Error) => logger.warn('models were not listed', { reason: error.message }));
            return store;
          },
        },
        {
          provide: Engines,
          inject: [InferenceMetrics],
          useFactory: (metrics: InferenceMetrics) =>
            Engines.start(config, logger, {
              ...(threadFile && { threadFile }),
              ...(onStall && { onStall }),
              onLoaded: (loaded, device) => metrics.modelLoaded(loaded, device),
            }),
        },
        {
          provide: StopListener,
          useFactory: async () => {
            const stops = new StopListener(databaseUrl, logger);
            await stops.start();
            return stops;
          },
        },
        {
          provide: ClockWatch,
          inject: [DataSource],
          useFactory: async (dataSource: DataSource) => {
            const clock = new ClockWatch({
              databaseNow: () => databaseNow(dataSource),
              say: (sentence, details) => logger.warn(sentence, details),
              ...(now && { now }),
            });
            await clock.start();
            return clock;
          },
        },
        {
          provide: HealthServer,
          inject: [DataSource, JOB_BACK_END, IMAGE_STORAGE, Engines, ClockWatch, Metrics],
          useFactory: (
            dataSource: DataSource,
            jobs: JobBackEnd,
            storage: ImageStorage,
            engines: Engines,
            clock: ClockWatch,
            metrics: Metrics,
          ) =>
            new HealthServer(
              {
                database: remembering(() => probeWrite(dataSource), databaseCheckMs),
                queue: () => jobs.counts('images'),
                storage: remembering(() => storage.check(), storageCheckMs),
                engine: () => engines.alive(),
                clock: async () => clock.agrees,
              },
              metrics,
              config.metricsToken,
            ),
        },
        DrawingService,
        FailureService,
        FileSweeper,
        GenerationProcessor,
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

  beforeApplicationShutdown(): void {
    this.health.stop();
    this.clock.stop();
  }

  /** The processor has given its tasks back by now: what is left goes in the order in which it was needed. */
  async onApplicationShutdown(): Promise<void> {
    await this.engines.close();
    await this.stops.close();
    await this.jobs.close();
    await this.dataSource.destroy();
    await this.health.close();
  }
}
