import type { DataSource, EntityManager } from 'typeorm';
import type { JobBackEnd } from './job-back-end';
import type { NewJob, QueueName } from './jobs';

/** A database transaction that can also make jobs: rows and jobs are there together or not at all. */
export interface JobTransaction {
  readonly manager: EntityManager;
  enqueue<Q extends QueueName>(queue: Q, ...jobs: NewJob<Q>[]): Promise<void>;
}

/** Runs work in one transaction of rows and jobs. */
export class Transactions {
  constructor(
    private readonly dataSource: DataSource,
    private readonly jobs: JobBackEnd,
    private readonly onError: (error: unknown) => void,
  ) {}

  /** Commits what `work` wrote and the jobs it made; an error of `work` undoes both. */
  async run<T>(work: (transaction: JobTransaction) => Promise<T>): Promise<T> {
    const afterCommit: (() => Promise<void>)[] = [];
    const result = await this.dataSource.transaction((manager) =>
      work({
        manager,
        enqueue: async (queue, ...jobs) => {
          if (jobs.length > 0) afterCommit.push(await this.jobs.add(manager, queue, jobs));
        },
      }),
    );
    // The rows are committed: a job that could not be added now is the sweeper's to add, not the caller's failure.
    for (const add of afterCommit) await add().catch(this.onError);
    return result;
  }
}
