import { type Config, CONFIG } from '@app/config';
import { ClockWatch, probeWrite } from '@app/database';
import { IMAGE_STORAGE, type ImageStorage } from '@app/storage';
import { WakeUps } from '@app/queue';
import { Metrics, cached } from '@app/observability';
import type { FactoryProvider } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { Engines } from '../engine-client/engines';
import { HealthServer } from './health-server';

/** A write test of a remote store costs money. */
const storageCheckMs = 15_000;
/** However often health is requested, the database is written at most this often. */
const databaseCheckMs = 1_000;

/** The health checks of everything the worker needs to draw. */
export const healthServer: FactoryProvider<HealthServer> = {
  provide: HealthServer,
  inject: [DataSource, WakeUps, IMAGE_STORAGE, Engines, ClockWatch, Metrics, CONFIG],
  useFactory: (
    dataSource: DataSource,
    wakeUps: WakeUps,
    storage: ImageStorage,
    engines: Engines,
    clock: ClockWatch,
    metrics: Metrics,
    { metricsToken }: Config,
  ) =>
    new HealthServer(
      {
        database: cached(() => probeWrite(dataSource), databaseCheckMs),
        queue: () => wakeUps.check(),
        storage: cached(() => storage.check(), storageCheckMs),
        engine: () => engines.ensureRunning(),
        clock: async () => clock.agrees,
      },
      metrics,
      metricsToken,
    ),
};
