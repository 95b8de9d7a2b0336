import { existsSync } from 'node:fs';
import { mkdir, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestDatabase } from './database';
import { startRedis } from './redis';
import { startS3 } from './s3-server';

/** scale-out.setup.ts sets the variable. */
const isScaledOut = (): boolean => process.env.TEST_SCALE_OUT === 'true';

const leftOut = Object.assign(() => undefined, { each: () => leftOut }) as unknown as typeof it;

/** `it` of a test whose outcome does not depend on the queue or the storage: `scale-out` skips it. */
export const itOnce = isScaledOut() ? leftOut : it;

/** `describe` of such tests. */
export const describeOnce = isScaledOut() ? (leftOut as unknown as typeof describe) : describe;

/** The job queue of a test: in its PostgreSQL, or in a Redis of its own. */
export interface RunningQueue {
  /** Variables with which the service uses it. */
  env: Record<string, string>;
  /** Loses every job. */
  loseJobs(): Promise<void>;
  /** @returns what repairs it */
  breakDown(): Promise<() => Promise<void>>;
  close(): Promise<void>;
}

/** The picture storage of a test: its data folder, or an S3 server of its own. */
export interface RunningStorage {
  /** Variables with which the service uses it. */
  env: Record<string, string>;
  /** Everything under a prefix, or at all, sorted: keys, and on a disk each empty folder, with a trailing slash. */
  contents(prefix?: string): Promise<string[]>;
  age(key: string, modifiedAt: Date): Promise<void>;
  breakDown(): Promise<void>;
  close(): Promise<void>;
}

/** Back ends that the processes of one service share besides the database. */
export interface RunningBackEnds {
  /** Variables with which the service uses both. */
  env: Record<string, string>;
  queue: RunningQueue;
  storage: RunningStorage;
  close(): Promise<void>;
}

/** Starts the back ends of the spec file's project. */
export async function startBackEnds(
  database: Pick<TestDatabase, 'url' | 'dataSource'>,
  dataDir: string,
): Promise<RunningBackEnds> {
  const queue = isScaledOut() ? await startRedisQueue() : postgresQueue(database);
  const storage = await startStorage(dataDir);
  return {
    env: { ...queue.env, ...storage.env },
    queue,
    storage,
    async close() {
      await queue.close();
      await storage.close();
    },
  };
}

/** Starts only the storage. */
export async function startStorage(dataDir: string): Promise<RunningStorage> {
  return isScaledOut() ? startS3Storage() : diskStorage(join(dataDir, 'images'));
}

function postgresQueue({ dataSource }: Pick<TestDatabase, 'url' | 'dataSource'>): RunningQueue {
  return {
    env: {},
    loseJobs: async () => void (await dataSource.query('DELETE FROM bullmq.job')),
    async breakDown() {
      await dataSource.query('ALTER SCHEMA bullmq RENAME TO elsewhere');
      return async () => void (await dataSource.query('ALTER SCHEMA elsewhere RENAME TO bullmq'));
    },
    close: async () => undefined,
  };
}

async function startRedisQueue(): Promise<RunningQueue> {
  const server = await startRedis();
  return {
    env: { QUEUE_BACKEND: 'redis', REDIS_URL: server.url },
    loseJobs: () => server.flush(),
    async breakDown() {
      await server.kill();
      return () => server.start();
    },
    close: () => server.close(),
  };
}

function diskStorage(folder: string): RunningStorage {
  return {
    env: {},
    contents: async (prefix = '') => (existsSync(join(folder, prefix)) ? (await leavesOf(folder, prefix)).sort() : []),
    age: (key, modifiedAt) => utimes(join(folder, key), modifiedAt, modifiedAt),
    async breakDown() {
      await rm(folder, { recursive: true, force: true });
      await mkdir(join(folder, '..'), { recursive: true });
      await writeFile(folder, '');
    },
    close: async () => undefined,
  };
}

async function leavesOf(root: string, folder: string): Promise<string[]> {
  const entries = await readdir(join(root, folder), { withFileTypes: true });
  if (entries.length === 0) return folder ? [`${folder}/`] : [];
  const leaves = entries.map(async (entry) => {
    const path = folder ? `${folder}/${entry.name}` : entry.name;
    return entry.isDirectory() ? leavesOf(root, path) : [path];
  });
  return (await Promise.all(leaves)).flat();
}

async function startS3Storage(): Promise<RunningStorage> {
  const server = await startS3();
  return {
    env: server.env,
    contents: async (prefix = '') =>
      [...server.objects.keys()].filter((key) => !prefix || key.startsWith(`${prefix}/`)).sort(),
    async age(key, modifiedAt) {
      const object = server.objects.get(key);
      if (!object) throw new Error(`There is no ${key} to make old.`);
      object.modifiedAt = modifiedAt;
    },
    breakDown: async () => server.trouble('deny'),
    close: () => server.close(),
  };
}
