import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { DataSource } from 'typeorm';
import { insertKey, type Reply, request, type RequestOptions, type TestKey } from './api';
import { type RunningBackEnds, startBackEnds } from './back-ends';
import { createTestDatabase } from './database';
import { quickCollection, ServiceProcess } from './service-process';

/** The api and workers as processes, on their own database, queue and storage. */
export interface TestService {
  baseUrl: string;
  /** What its processes are told, for commands beside them. */
  env: Record<string, string>;
  dataSource: DataSource;
  /** Their queue and their storage. */
  backEnds: RunningBackEnds;
  api: ServiceProcess;
  workers: ServiceProcess[];
  startWorker: (env?: Record<string, string>) => Promise<ServiceProcess>;
  /** Such as after the first was killed. */
  startApi: () => Promise<ServiceProcess>;
  createKey: () => Promise<TestKey>;
  request: <T = Record<string, unknown>>(method: string, path: string, options?: RequestOptions) => Promise<Reply<T>>;
  close: () => Promise<void>;
}

/** A port of its own for each process, and no limits. */
const openToAll = { RATE_LIMIT_PER_MINUTE: '0', MAX_QUEUED_PER_KEY: '0', PORT: '0', HOST: '127.0.0.1' };

/** @param env for both apps; `workers` (1) workers are started at once. */
export async function startTestService({ env = {}, workers = 1 } = {}): Promise<TestService> {
  const database = await createTestDatabase();
  const dataDir = await mkdtemp(join(tmpdir(), 'darkroom-service-'));
  const backEnds = await startBackEnds(database, dataDir);
  const shared = {
    DATABASE_URL: database.url,
    DATA_DIR: dataDir,
    MODELS_DIR: resolve(__dirname, '..', '..', 'models'),
    MODEL_FALLBACK: 'on',
    WEBHOOK_ALLOW_PRIVATE: 'true',
    ...openToAll,
    ...backEnds.env,
    ...env,
  };
  const started: ServiceProcess[] = [];
  const start = async (name: 'api' | 'inference', more: Record<string, string> = {}): Promise<ServiceProcess> => {
    // Machines with a remote store share no disk.
    const own = backEnds.env.STORAGE === 's3' ? { DATA_DIR: await mkdtemp(`${dataDir}/${name}-`) } : {};
    const child = new ServiceProcess(name, { ...shared, ...own, ...more }, [
      '--enable-source-maps',
      ...quickCollection,
    ]);
    started.push(child);
    await child.listening();
    return child;
  };
  const startWorker = (more?: Record<string, string>) => start('inference', more);
  const startApi = () => start('api');
  const api = await startApi();
  const running = await Promise.all(Array.from({ length: workers }, () => startWorker()));
  return {
    baseUrl: api.url,
    env: shared,
    dataSource: database.dataSource,
    backEnds,
    api,
    workers: running,
    startWorker,
    startApi,
    createKey: () => insertKey(database.dataSource),
    request: (method, path, options) => request(api.url, method, path, options),
    async close() {
      await Promise.all(started.map((child) => child.end('SIGKILL')));
      await backEnds.close();
      await database.drop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}
