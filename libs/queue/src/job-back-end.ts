import type { Config } from '@app/config';
import { poolOptions, statementTimeoutMs } from '@app/database';
import type { BackendFactory, JobState, QueueOptions } from 'bullmq';
import type { EntityManager } from 'typeorm';
import { createClosableRedisBackend } from './closable-redis-backend';
import type { JobRow } from './job-rows';
import type { NewJob, QueueName } from './jobs';
import { restrained } from './restrained-backend';
import { createSteadyPostgresBackend } from './steady-postgres-backend';

/** State of a job as the back end sees it; `missing` when it knows no such job. */
export type JobPresence = JobState | 'unknown' | 'missing';

/** Where jobs wait. Two implementations: PostgreSQL and Redis. */
export interface JobBackEnd {
  /**
   * Adds jobs for rows that `manager`'s transaction writes. PostgreSQL adds inside the transaction;
   * Redis cannot, so the returned function adds them and is called after the commit.
   */
  add<Q extends QueueName>(manager: EntityManager, queue: Q, jobs: readonly NewJob<Q>[]): Promise<() => Promise<void>>;
  /** Adds jobs for rows that are committed. */
  addNow<Q extends QueueName>(queue: Q, jobs: readonly NewJob<Q>[]): Promise<void>;
  /**
   * What the database's function `insert_tasks` takes for a job, where jobs are rows: it writes a task and its job together.
   * Undefined where they are not.
   */
  rowOf?<Q extends QueueName>(queue: Q, job: NewJob<Q>): JobRow;
  /** Looks a job up, for the sweeper. */
  presence(queue: QueueName, jobId: string): Promise<JobPresence>;
  /** How many jobs wait, run, and wait for their time. */
  counts(queue: QueueName): Promise<Record<string, number>>;
  close(): Promise<void>;
}

/** What BullMQ's classes need to reach the configured back end. */
export interface QueueConnection {
  connection: QueueOptions['connection'];
  factory: BackendFactory;
}

/** The queue's tables live in a schema of their own. */
export const searchPath = 'bullmq, public';

/** Of every pool that the queue uses. */
export const queuePoolOptions = {
  max: 3,
  application_name: 'darkroom-queue',
  ...poolOptions({ statementTimeoutMs, searchPath }),
};

/**
 * The connection of a worker or queue on the configured back end. Each owns a small pool of its own.
 * @param databaseUrl of the service's PostgreSQL.
 */
export function queueConnection(
  config: Pick<Config, 'queueBackend' | 'redisUrl'>,
  databaseUrl: string,
): QueueConnection {
  if (config.queueBackend === 'redis')
    return {
      connection: { url: config.redisUrl, maxRetriesPerRequest: null },
      factory: restrained(createClosableRedisBackend),
    };
  return {
    connection: { connectionString: databaseUrl, ...queuePoolOptions },
    factory: restrained(createSteadyPostgresBackend as unknown as BackendFactory),
  };
}
