import { Queue } from 'bullmq';
import type { EntityManager } from 'typeorm';
import type { JobBackEnd, JobPresence, QueueConnection } from './job-back-end';
import type { NewJob, QueueName } from './jobs';
import { Queues } from './queues';

/** A caller waits this long for Redis; the sweeper adds the job when it is back. */
const patienceMs = 2_000;

/** Jobs in Redis or Valkey, for many machines. A job is added after its row is committed; the sweeper closes the gap. */
export class RedisBackEnd implements JobBackEnd {
  private readonly queues: Queues;

  constructor({ connection, factory }: QueueConnection, onError: (error: Error) => void) {
    const open = (name: QueueName): Queue => {
      // Fails at once while Redis is away, instead of keeping what it is told until Redis is back.
      const impatient = {
        ...connection,
        maxRetriesPerRequest: 1,
        enableOfflineQueue: false,
        commandTimeout: patienceMs,
      };
      return new Queue(name, { connection: impatient }, factory) as unknown as Queue;
    };
    this.queues = new Queues(open, onError);
  }

  async add<Q extends QueueName>(
    _manager: EntityManager,
    queue: Q,
    jobs: readonly NewJob<Q>[],
  ): Promise<() => Promise<void>> {
    return () => this.queues.add(queue, jobs);
  }

  presence(queue: QueueName, jobId: string): Promise<JobPresence> {
    return this.queues.presence(queue, jobId);
  }

  counts(queue: QueueName): Promise<Record<string, number>> {
    return this.queues.counts(queue);
  }

  close(): Promise<void> {
    return this.queues.close();
  }
}
