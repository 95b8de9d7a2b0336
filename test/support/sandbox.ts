import { type Config, CONFIG } from '@app/config';
import { ClockWatch } from '@app/database';
import { JsonLogger } from '@app/observability';
import { WakeUps } from '@app/queue';
import { PictureReader } from '@app/pictures';
import { IMAGE_STORAGE } from '@app/storage';
import { Tasks, Trainings } from '@app/tasks';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { DataSource } from 'typeorm';
import { ClaimingParts } from '../../apps/inference/src/drawing/claiming-loop';
import { FailureService } from '../../apps/inference/src/drawing/failure.service';
import { ProgressPublisher } from '../../apps/inference/src/drawing/progress-publisher';
import { SourcePictures } from '../../apps/inference/src/drawing/source-pictures';
import { StopListener } from '../../apps/inference/src/drawing/stop-listener';
import { TaskRunner } from '../../apps/inference/src/drawing/task-runner';
import { PictureCredentials } from '../../apps/inference/src/pictures/picture-credentials';
import { PictureStore } from '../../apps/inference/src/pictures/picture-store';
import { StorageHealth } from '../../apps/inference/src/pictures/storage-health';
import { TrainingStore } from '../../apps/inference/src/training/training-store';
import { SandboxLoop } from '../../apps/inference/src/sandbox/sandbox-loop';

/** Draws for sandbox keys in this process, as a worker does. @returns what ends it */
export async function startSandbox(app: NestExpressApplication, databaseUrl: string): Promise<() => Promise<void>> {
  const [dataSource, tasks, logger] = [app.get(DataSource), app.get(Tasks), app.get(JsonLogger)];
  const stops = new StopListener({ ...app.get<Config>(CONFIG), databaseUrl }, logger);
  await stops.onModuleInit();
  const credentials = new PictureCredentials(app.get<Config>(CONFIG), logger);
  const loop = new SandboxLoop(
    new ClaimingParts(
      app.get(ClockWatch),
      app.get(WakeUps),
      new StorageHealth(app.get(IMAGE_STORAGE), logger),
      credentials,
      logger,
    ),
    dataSource,
    tasks,
    app.get(Trainings),
    new TaskRunner(tasks, stops, new FailureService(tasks, logger, { isAtFault: async () => false }), logger),
    new PictureStore(app.get(IMAGE_STORAGE), credentials),
    new ProgressPublisher(dataSource, logger),
    new SourcePictures(app.get(PictureReader), tasks),
    new TrainingStore(app.get(IMAGE_STORAGE), dataSource, app.get(Trainings), logger),
  );
  loop.onApplicationBootstrap();
  return async () => {
    await loop.beforeApplicationShutdown();
    await stops.close();
    await credentials.onApplicationShutdown();
  };
}
