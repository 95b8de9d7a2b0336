import type { Queue } from 'bullmq';
import type { JobPresence } from './job-back-end';
import { type NewJob, openStates, type QueueName, queueNames } from './jobs';

/** The service's queues on one back end, and what all back ends have in common. */
export class Queues {
  private readonly queues: { [Q in QueueName]: Queue };

  /** @param open makes a queue on the back end's own connection. */
  constructor(open: (name: QueueName) => Queue, onError: (error: Error) => void) {
    const watched = (name: QueueName): Queue => open(name).on('error', onError);
    this.queues = {
      images: watched(queueNames.images),
    };
  }

  /** Resolves when the queue can be used. */
  async ready(queue: QueueName): Promise<void> {
    await this.queues[queue].waitUntilReady();
  }

  async add<Q extends QueueName>(queue: Q, jobs: readonly NewJob<Q>[]): Promise<void> {
    await this.queues[queue].addBulk(
      jobs.map(({ id, data, delayMs }) => ({
        name: queue,
        data,
        opts: { jobId: id, ...(delayMs && { delay: delayMs }) },
      })),
    );
  }

  async presence(queue: QueueName, jobId: string): Promise<JobPresence> {
    const job = await this.queues[queue].getJob(jobId);
    return job ? await job.getState() : 'missing';
  }

  counts(queue: QueueName): Promise<Record<string, number>> {
    return this.queues[queue].getJobCounts(...openStates);
  }

  async close(): Promise<void> {
    await Promise.all(Object.values(this.queues).map((queue) => queue.close()));
  }
}
