import { AsyncLocalStorage } from 'node:async_hooks';
import type { QueueOptions } from 'bullmq';
import { createPostgresBackend, Queue } from 'bullmq';
import { Pool } from 'pg';
import type { EntityManager } from 'typeorm';
import type { JobBackEnd, JobPresence } from './job-back-end';
import { type NewJob, type QueueName, queueNames } from './jobs';

type Query = (text: string, params?: readonly unknown[]) => Promise<{ rows: unknown[]; rowCount?: number | null }>;

/** The queue's tables live in a schema of their own. */
const searchPath = 'bullmq, public';

/** Jobs in the service's own PostgreSQL, added in the transaction that writes their rows. */
export class PostgresBackEnd implements JobBackEnd {
  private readonly pool: Pool;
  /** Set while a transaction adds jobs: every query of the queue then goes to that transaction. */
  private readonly transaction = new AsyncLocalStorage<Query>();
  private readonly queues: { [Q in QueueName]: Queue };

  constructor(databaseUrl: string, onError: (error: Error) => void) {
    this.pool = new Pool({
      connectionString: databaseUrl,
      max: 3,
      options: `-c search_path=${searchPath.replace(' ', '')}`,
      application_name: 'darkroom-queue',
    });
    this.pool.on('error', onError);
    const open = (name: QueueName): Queue => {
      const connection = this.forwardingPool() as unknown as QueueOptions['connection'];
      const queue = new Queue(name, { connection, skipMetasUpdate: true }, createPostgresBackend as never);
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
    manager: EntityManager,
    queue: Q,
    jobs: readonly NewJob<Q>[],
  ): Promise<() => Promise<void>> {
    const target = this.queues[queue];
    // The schema check must not run inside the caller's transaction, and must have run before it.
    await target.waitUntilReady();
    const runner = manager.queryRunner;
    if (!runner?.isTransactionActive) throw new Error('Jobs are added inside a transaction.');
    const client = (await runner.connect()) as { query: Query };
    await client.query(`SET LOCAL search_path = ${searchPath}`);
    await this.transaction.run(
      (text, params) => client.query(text, params),
      () =>
        target.addBulk(
          jobs.map(({ id, data, delayMs }) => ({
            name: queue,
            data,
            opts: { jobId: id, ...(delayMs && { delay: delayMs }) },
          })),
        ),
    );
    await client.query('SET LOCAL search_path TO DEFAULT');
    return async () => undefined;
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
    await this.pool.end();
  }

  /** A pool as the queue sees it: the caller's transaction while there is one, else the real pool. */
  private forwardingPool() {
    const { pool, transaction } = this;
    return {
      options: { keepAlive: false },
      query: (text: string, params?: readonly unknown[]) =>
        (transaction.getStore() ?? ((t, p) => pool.query(t, p as unknown[])))(text, params),
      connect: async () => {
        const query = transaction.getStore();
        // Nested BEGIN and COMMIT of the queue would end the caller's transaction.
        return query
          ? { query: withoutTransactionControl(query), release: () => undefined, on: () => undefined }
          : pool.connect();
      },
      end: async () => undefined,
      on: () => undefined,
      off: () => undefined,
      removeListener: () => undefined,
    };
  }
}

function withoutTransactionControl(query: Query): Query {
  return async (text, params) => (/^\s*(BEGIN|COMMIT|ROLLBACK)\b/i.test(text) ? { rows: [] } : query(text, params));
}
