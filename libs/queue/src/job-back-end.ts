import type { Config } from '@app/config';
import { poolOptions, statementTimeoutMs } from '@app/database';
import type { BackendFactory, JobState, QueueOptions } from 'bullmq';
import type { EntityManager } from 'typeorm';
import { createClosableRedisBackend } from './closable-redis-backend';
import type { JobRow } from './job-rows';
import type { NewJob, QueueName } from './jobs';
import { withBackOff } from './back-off-backend';
import { createSteadyPostgresBackend } from './steady-postgres-backend';

/** State of a job in the back end; `missing` if it knows no such job. */
export type JobPresence = JobState | 'unknown' | 'missing';

/** Where jobs wait. Two implementations: PostgreSQL and Redis. */
export interface JobBackEnd {
  /**
   * Adds jobs for rows that `manager`'s transaction writes. PostgreSQL adds them inside the transaction; Redis cannot,
   * so call the returned function after the commit.
   */
  add<Q extends QueueName>(manager: EntityManager, queue: Q, jobs: readonly NewJob<Q>[]): Promise<() => Promise<void>>;
  /** Adds jobs for committed rows. */
  addNow<Q extends QueueName>(queue: Q, jobs: readonly NewJob<Q>[]): Promise<void>;
  /**
   * The job as the database's function `insert_tasks` takes it, if jobs are rows: that function writes a task and its
   * job together. Undefined if they are not.
   */
  rowOf?<Q extends QueueName>(queue: Q, job: NewJob<Q>): JobRow;
  /** Returns the state of a job, for the sweeper. */
  presence(queue: QueueName, jobId: string): Promise<JobPresence>;
  /** Numbers of waiting, running and delayed jobs. */
  counts(queue: QueueName): Promise<Record<string, number>>;
  close(): Promise<void>;
}

/** The settings with which BullMQ's classes reach the configured back end. */
export interface QueueConnection {
  connection: QueueOptions['connection'];
  factory: BackendFactory;
}

/** The queue's tables live in a schema of their own. */
export const searchPath = 'bullmq, public';

/** Options of every pool that the queue uses. */
export const queuePoolOptions = {
  max: 3,
  application_name: 'darkroom-queue',
  ...poolOptions({ statementTimeoutMs, searchPath }),
};

/**
 * The connection of a worker or queue to the configured back end. Each has its own small pool.
 * @param databaseUrl of the service's PostgreSQL.
 */
export function queueConnection(
  config: Pick<Config, 'queueBackend' | 'redisUrl'>,
  databaseUrl: string,
): QueueConnection {
  if (config.queueBackend === 'redis')
    return {
      connection: { url: config.redisUrl, maxRetriesPerRequest: null },
      factory: withBackOff(createClosableRedisBackend),
    };
  return {
    connection: { connectionString: databaseUrl, ...queuePoolOptions },
    factory: withBackOff(createSteadyPostgresBackend as unknown as BackendFactory),
  };
}
