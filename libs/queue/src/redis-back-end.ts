import { Queue } from 'bullmq';
import type { EntityManager } from 'typeorm';
import type { JobBackEnd, JobPresence, QueueConnection } from './job-back-end';
import { type NewJob, type QueueName, queueNames } from './jobs';

/** A caller waits this long for Redis; the sweeper adds the job when it is back. */
const patienceMs = 2_000;

/** Jobs in Redis or Valkey, for many machines. A job is added after its row is committed; the sweeper closes the gap. */
export class RedisBackEnd implements JobBackEnd {
  private readonly queues: { [Q in QueueName]: Queue };

  constructor({ connection, factory }: QueueConnection, onError: (error: Error) => void) {
    const open = (name: QueueName): Queue => {
      // Fails at once while Redis is away, instead of keeping what it is told until Redis is back.
      const impatient = {
        ...connection,
        maxRetriesPerRequest: 1,
        enableOfflineQueue: false,
        commandTimeout: patienceMs,
      };
      const queue = new Queue(name, { connection: impatient }, factory) as unknown as Queue;
      queue.on('error', onError);
      return queue;
    };
    this.queues = {
      images: open(queueNames.images),
      sandbox: open(queueNames.sandbox),
      webhooks: open(queueNames.webhooks),
    };
  }

  async add<Q extends QueueName>(
    _manager: EntityManager,
    queue: Q,
    jobs: readonly NewJob<Q>[],
  ): Promise<() => Promise<void>> {
    return async () => {
      await this.queues[queue].addBulk(
        jobs.map(({ id, data, delayMs }) => ({
          name: queue,
          data,
          opts: { jobId: id, ...(delayMs && { delay: delayMs }) },
        })),
      );
    };
  }

  async presence(queue: QueueName, jobId: string): Promise<JobPresence> {
    const job = await this.queues[queue].getJob(jobId);
    return job ? await job.getState() : 'missing';
  }

  counts(queue: QueueName): Promise<Record<string, number>> {
    return this.queues[queue].getJobCounts('waiting', 'active', 'delayed', 'prioritized');
  }

  async close(): Promise<void> {
    await Promise.all(Object.values(this.queues).map((queue) => queue.close()));
  }
}
