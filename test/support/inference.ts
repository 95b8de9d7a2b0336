import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Config } from '@app/config';
import { loadConfig } from '@app/config';
import { ImageTask, newIdentifier } from '@app/domain';
import { JsonLogger } from '@app/logging';
import type { JobBackEnd } from '@app/queue';
import { ImageTaskLifeCycle, openJobBackEnd, Transactions } from '@app/queue';
import type { DataSource } from 'typeorm';
import { createTestDatabase } from './database';

const root = resolve(__dirname, '..', '..');

/** The engine threads' entry as it is built; the global set-up of the integration tests builds it. */
export const threadFile = join(root, 'dist', 'apps', 'inference', 'src', 'engine', 'engine-thread.js');

/** A database, a queue and a data folder, as a worker finds them. */
export interface InferenceBench {
  config: Config;
  databaseUrl: string;
  dataSource: DataSource;
  jobs: JobBackEnd;
  transactions: Transactions;
  lifeCycle: ImageTaskLifeCycle;
  logger: JsonLogger;
  /** Folder of the pictures. */
  imagesDir: string;
  /** Inserts a queued task and, unless told otherwise, its job. */
  addTask(values?: Partial<ImageTask>, options?: { withJob?: boolean }): Promise<ImageTask>;
  taskOf(id: string): Promise<ImageTask>;
  /** Waits until the task has a terminated status. */
  terminated(id: string): Promise<ImageTask>;
  close(): Promise<void>;
}

/** Sets up everything that a worker needs but the worker itself. */
export async function createInferenceBench(environment: Record<string, string> = {}): Promise<InferenceBench> {
  const database = await createTestDatabase();
  const dataDir = await mkdtemp(join(tmpdir(), 'darkroom-inference-'));
  const config = loadConfig({
    DEVICE: 'cpu',
    INFERENCE_THREADS: '1',
    DATA_DIR: dataDir,
    MODELS_DIR: join(root, 'models'),
    LOG_LEVEL: process.env.TEST_LOG_LEVEL ?? 'silent',
    ...environment,
  });
  const logger = new JsonLogger('test', config.logLevel);
  const fail = (error: unknown): void => logger.error('the test bench failed', error);
  const jobs = openJobBackEnd(config, database.url, fail);
  const transactions = new Transactions(database.dataSource, jobs, fail);
  const lifeCycle = new ImageTaskLifeCycle(transactions);
  const taskOf = (id: string): Promise<ImageTask> =>
    database.dataSource.manager.findOneOrFail(ImageTask, { where: { id }, relations: { images: true } });
  return {
    config,
    databaseUrl: database.url,
    dataSource: database.dataSource,
    jobs,
    transactions,
    lifeCycle,
    logger,
    imagesDir: join(dataDir, 'images'),
    taskOf,
    async addTask(values = {}, { withJob = true } = {}) {
      const task = imageTask(values);
      await transactions.run(async (transaction) => {
        await transaction.manager.insert(ImageTask, task);
        if (withJob) await lifeCycle.enqueue(transaction, [task]);
      });
      return taskOf(task.id);
    },
    async terminated(id) {
      for (;;) {
        const task = await taskOf(id);
        if (task.status !== 'queued' && task.status !== 'processing') return task;
        await new Promise((resolve) => setTimeout(resolve, 25));
      }
    },
    async close() {
      await jobs.close();
      await database.drop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

function imageTask(values: Partial<ImageTask>): ImageTask {
  return Object.assign(new ImageTask(), {
    id: newIdentifier(),
    kind: 'generation',
    ownerId: newIdentifier(),
    finetuneId: null,
    prompt: 'a red circle on a blue background',
    negativePrompt: null,
    cfg: 7.5,
    steps: 3,
    seed: 42,
    scheduler: 'euler',
    model: 'shapes',
    aspectRatio: 'square',
    highResolution: false,
    outputFormat: 'png',
    promptWeighting: false,
    numImages: 1,
    status: 'queued',
    createdAt: new Date(),
    ...values,
  } satisfies Partial<ImageTask>);
}
