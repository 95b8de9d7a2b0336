import type { DataSource } from 'typeorm';
import { startRedis, whyNoRedis } from './redis';

/** A back end of the queues while a spec file runs on it. */
export interface RunningBackEnd {
  /** What makes the service use it. */
  env: Record<string, string>;
  /** Loses every job, as a restart or an operator may. */
  loseJobs(dataSource: DataSource): Promise<void>;
  close(): Promise<void>;
}

interface BackEnd {
  name: string;
  start(): Promise<RunningBackEnd>;
}

const postgres: BackEnd = {
  name: 'PostgreSQL',
  start: async () => ({
    env: {},
    loseJobs: async (dataSource) => void (await dataSource.query('DELETE FROM bullmq.job')),
    close: async () => undefined,
  }),
};

const redis: BackEnd = {
  name: 'Redis',
  async start() {
    const server = await startRedis();
    return {
      env: { QUEUE_BACKEND: 'redis', REDIS_URL: server.url },
      loseJobs: () => server.flush(),
      close: () => server.close(),
    };
  },
};

/** Runs the same tests on every back end of the queues; where there is no Redis, those on it are skipped and counted. */
export function describeOnBackEnds(name: string, tests: (start: () => Promise<RunningBackEnd>) => void): void {
  for (const backEnd of [postgres, redis]) {
    const title = `${name} on ${backEnd.name}`;
    if (backEnd === redis && whyNoRedis)
      describe(title, () => {
        it.skip(`is not tested here: ${whyNoRedis}`, () => undefined);
      });
    else describe(title, () => tests(() => backEnd.start()));
  }
}
