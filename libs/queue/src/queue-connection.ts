import type { Config } from '@app/config';
import { poolOptions, statementTimeoutMs } from '@app/database';
import { type BackendFactory, createPostgresBackend, createRedisBackend, type QueueOptions } from 'bullmq';
import { Redis } from 'ioredis';
import { Pool } from 'pg';

/** Options with which BullMQ's classes reach the configured back end, and what ends it. */
export interface QueueConnection {
  connection: QueueOptions['connection'];
  factory: BackendFactory;
  close(): Promise<void>;
}

/** One connection asks, one listens. */
const poolSize = 3;
const longestReconnectMs = 5_000;

/** A connection to PostgreSQL or Redis that neither ends the process nor floods the log when it is lost. */
export function openQueueConnection(
  { queueBackend, redisUrl = '' }: Pick<Config, 'queueBackend' | 'redisUrl'>,
  databaseUrl: string,
  onError: (error: Error) => void,
): QueueConnection {
  if (queueBackend === 'redis') {
    const client = new ClosableRedis(redisUrl, onError);
    return { connection: client, factory: createRedisBackend, close: async () => client.closeAll() };
  }
  const pool = new Pool({
    connectionString: databaseUrl,
    max: poolSize,
    application_name: 'darkroom-queue',
    ...poolOptions({ statementTimeoutMs, searchPath: 'bullmq, public' }),
  });
  pool.on('error', onError);
  return { connection: pool, factory: createPostgresBackend as never, close: () => pool.end() };
}

/**
 * Remembers the connections that BullMQ duplicates from this one: one that waits to reconnect does not end with
 * BullMQ's worker.
 */
class ClosableRedis extends Redis {
  private readonly copies: Redis[] = [];

  constructor(
    url: string,
    private readonly onError: (error: Error) => void,
  ) {
    super(url, {
      maxRetriesPerRequest: null,
      retryStrategy: (tries) => Math.min(250 * tries, longestReconnectMs),
    });
    this.on('error', onError);
  }

  override duplicate(...parameters: Parameters<Redis['duplicate']>): Redis {
    const copy = super.duplicate(...parameters).on('error', this.onError);
    this.copies.push(copy);
    return copy;
  }

  closeAll(): void {
    for (const client of [this, ...this.copies]) client.disconnect();
  }
}
