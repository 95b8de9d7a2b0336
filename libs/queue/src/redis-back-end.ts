import { once } from 'node:events';
import { BackOff } from '@app/process';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import type { EntityManager } from 'typeorm';
import { createClosableRedisBackend } from './closable-redis-backend';
import type { JobBackEnd, JobPresence } from './job-back-end';
import type { NewJob, QueueName } from './jobs';
import { Queues } from './queues';

/** How long a caller waits for Redis; if it is away longer, the sweeper adds the job later. */
const timeoutMs = 2_000;
/** Growing waits between reconnects. */
const firstReconnectMs = 250;
const longestReconnectMs = 5_000;

/**
 * Jobs in Redis or Valkey, for many machines. A job is added after its row is committed; the sweeper closes the gap.
 */
export class RedisBackEnd implements JobBackEnd {
  private readonly client: Redis;
  private readonly queues: Queues;
  private connecting?: Promise<unknown>;

  constructor(redisUrl: string, onError: (error: Error) => void) {
    const backOff = new BackOff(firstReconnectMs, longestReconnectMs);
    // Fails at once while Redis is away, instead of keeping commands until it is back.
    this.client = new Redis(redisUrl, {
      maxRetriesPerRequest: 1,
      retryStrategy: () => backOff.next(),
      enableOfflineQueue: false,
      connectTimeout: timeoutMs,
      commandTimeout: timeoutMs,
    });
    this.client.on('ready', () => backOff.reset());
    // The queues report its errors, but no longer when they are closed; ioredis prints errors that nobody listens to.
    this.client.on('error', () => undefined);
    // A queue that waits for its connection would make its callers wait too.
    const options = { connection: this.client, skipWaitingForReady: true, skipVersionCheck: true };
    const open = (name: QueueName): Queue => new Queue(name, options, createClosableRedisBackend);
    // Each queue reports every error of their shared connection.
    let told: Error | undefined;
    this.queues = new Queues(open, (error) => {
      if (error !== told) onError(error);
      told = error;
    });
  }

  async add<Q extends QueueName>(
    _manager: EntityManager,
    queue: Q,
    jobs: readonly NewJob<Q>[],
  ): Promise<() => Promise<void>> {
    return () => this.addNow(queue, jobs);
  }

  async addNow<Q extends QueueName>(queue: Q, jobs: readonly NewJob<Q>[]): Promise<void> {
    await this.connected();
    await this.queues.add(queue, jobs);
  }

  async presence(queue: QueueName, jobId: string): Promise<JobPresence> {
    await this.connected();
    return this.queues.presence(queue, jobId);
  }

  async counts(queue: QueueName): Promise<Record<string, number>> {
    await this.connected();
    return this.queues.counts(queue);
  }

  async close(): Promise<void> {
    await this.queues.close();
    await this.client.quit().catch(() => this.client.disconnect());
  }

  /** Waits for a connection that is being made; rejects when it fails. Does not wait for a lost connection. */
  private async connected(): Promise<void> {
    if (!['connecting', 'connect'].includes(this.client.status)) return;
    this.connecting ??= once(this.client, 'ready', { signal: AbortSignal.timeout(timeoutMs) }).finally(() => {
      this.connecting = undefined;
    });
    await this.connecting;
  }
}
