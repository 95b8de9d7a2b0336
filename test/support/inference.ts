import { mkdtempSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { type Config, loadConfig } from '@app/config';
import { DatabaseContact } from '@app/database';
import { ApiKey, type DrawingTask, Image, isTerminated, newIdentifier } from '@app/domain';
import { StorageQuota, TaskIntake, Tasks, TaskSweep } from '@app/tasks';
import { JsonLogger } from '@app/observability';
import { PictureDecoder } from '@app/pictures';
import { openQueueConnection, openWakeUps, Transactions, type WakeUps } from '@app/queue';
import { type ImageStorage, openImageStorage } from '@app/storage';
import type { DataSource, EntityManager } from 'typeorm';
import { insertKey } from './api';
import { type RunningBackEnds, startBackEnds } from './back-ends';
import { createTestDatabase } from './database';
import { drawingOf, drawingTask, type DrawingValues, insertDrawing } from './drawing-rows';
import { until } from './until';

const root = resolve(__dirname, '..', '..');

/** The compiled entry of engine threads; the global set-up builds it. */
export const threadFile = join(root, 'dist', 'apps', 'inference', 'src', 'engine', 'engine-thread.js');

/** The entry of engine threads with a fault of `faulty-threads.cjs`. */
export function faultyThread(fault: string): string {
  const file = join(mkdtempSync(join(tmpdir(), 'darkroom-thread-')), `${fault}.cjs`);
  writeFileSync(file, `require(${JSON.stringify(join(__dirname, 'faulty-threads.cjs'))}).${fault}();\n`);
  return file;
}

/** A log line; `msg` is its message. */
export type LoggedLine = Record<string, unknown> & { msg: string };

/** The environment of a worker: a database, a queue and a data folder. */
export interface InferenceBench {
  config: Config;
  databaseUrl: string;
  dataSource: DataSource;
  wakeUps: WakeUps;
  transactions: Transactions;
  tasks: Tasks;
  sweep: TaskSweep;
  intake: TaskIntake;
  logger: JsonLogger;
  /** In order. */
  logged: LoggedLine[];
  storage: ImageStorage;
  /** The queue and the picture storage. */
  backEnds: RunningBackEnds;
  /** By default a queued one. */
  addTask(values?: DrawingValues): Promise<DrawingTask>;
  taskOf(id: string): Promise<DrawingTask>;
  /** Waits for a terminated status. */
  terminated(id: string): Promise<DrawingTask>;
  /** They end with the bench. */
  workers: { close(): Promise<void> }[];
  close(): Promise<void>;
}

/** The contact of a process that has always had the database, `fromNowMs` milliseconds from now. */
export class SteadyContact extends DatabaseContact {
  constructor(private readonly fromNowMs = 0) {
    super();
  }

  override get heldMs(): number {
    return Infinity;
  }

  override get databaseMs(): number {
    return Date.now() + this.fromNowMs;
  }
}

const quickDrawing = {
  ...{ prompt: 'a red circle on a blue background', steps: 3, seed: 42, scheduler: 'euler' },
  ...{ width: 256, height: 256 },
} as const;

/** Everything that a worker needs, except the worker. */
export async function createInferenceBench(environment: Record<string, string> = {}): Promise<InferenceBench> {
  PictureDecoder.processFile = join(root, 'dist', 'libs', 'pictures', 'src', 'decoding-process.js');
  const database = await createTestDatabase();
  const dataDir = await mkdtemp(join(tmpdir(), 'darkroom-inference-'));
  const backEnds = await startBackEnds(database, dataDir);
  const [logged, workers]: [LoggedLine[], InferenceBench['workers']] = [[], []];
  const config = configOf(dataDir, { ...backEnds.env, ...environment });
  const write = (line: string): void => void logged.push(JSON.parse(line) as LoggedLine);
  const logger = new JsonLogger('test', config.logLevel, { write });
  const fail = (error: unknown): void => logger.error('the test bench failed', error);
  const wakeUps = openWakeUps(openQueueConnection(config, database.url, fail), fail);
  const transactions = new Transactions(database.dataSource);
  const tasks = new Tasks(transactions, new SteadyContact());
  const { manager } = database.dataSource;
  return {
    config,
    databaseUrl: database.url,
    dataSource: database.dataSource,
    wakeUps,
    transactions,
    tasks,
    sweep: new TaskSweep(database.dataSource, tasks, logger),
    intake: new TaskIntake(transactions, wakeUps, new StorageQuota({ storageMbPerKey: 0 })),
    logger,
    logged,
    storage: openImageStorage(config),
    backEnds,
    taskOf: (id) => taskOf(manager, id),
    async addTask(values = {}) {
      const task = drawingTask(newIdentifier(), { ...quickDrawing, ...values });
      await ensureKey(database.dataSource, task.ownerId);
      await manager.transaction((transaction) => insertDrawing(transaction, task));
      wakeUps.ask();
      return taskOf(manager, task.id);
    },
    terminated: (id) =>
      until(async () => {
        const task = await taskOf(manager, id);
        return isTerminated(task.status) && task;
      }, `task ${id} has terminated`),
    workers,
    async close() {
      for (const worker of workers) await worker.close();
      await wakeUps.close();
      await backEnds.close();
      await database.drop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

async function ensureKey(dataSource: DataSource, id: string): Promise<void> {
  if (!(await dataSource.manager.existsBy(ApiKey, { id }))) await insertKey(dataSource, { id });
}

async function taskOf(manager: EntityManager, id: string): Promise<DrawingTask> {
  return Object.assign(await drawingOf(manager, id), { images: await manager.findBy(Image, { taskId: id }) });
}

function configOf(dataDir: string, environment: Record<string, string>): Config {
  return loadConfig({
    DEVICE: 'cpu',
    INFERENCE_THREADS: '1',
    DATA_DIR: dataDir,
    // Quick to draw with, see quick-model.ts.
    MODELS_DIR: process.env.TEST_MODELS_DIR,
    LOG_LEVEL: 'debug',
    ...environment,
  });
}
