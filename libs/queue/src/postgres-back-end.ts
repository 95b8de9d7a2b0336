import { AsyncLocalStorage } from 'node:async_hooks';
import type { QueueOptions } from 'bullmq';
import { Queue } from 'bullmq';
import { Pool } from 'pg';
import type { EntityManager } from 'typeorm';
import type { JobBackEnd, JobPresence } from './job-back-end';
import { queuePoolOptions, searchPath } from './job-back-end';
import { jobRow } from './job-rows';
import type { NewJob, QueueName } from './jobs';
import { Queues } from './queues';
import { createSteadyPostgresBackend } from './steady-postgres-backend';

type Query = (text: string, params?: readonly unknown[]) => Promise<{ rows: unknown[]; rowCount?: number | null }>;

/** Jobs in the service's own PostgreSQL, added in the transaction that writes their rows. */
export class PostgresBackEnd implements JobBackEnd {
  readonly rowOf = jobRow;
  private readonly pool: Pool;
  /** Set while a transaction adds jobs: the queue then sends every query to that transaction. */
  private readonly transaction = new AsyncLocalStorage<Query>();
  private readonly queues: Queues;

  constructor(databaseUrl: string, onError: (error: Error) => void) {
    this.pool = new Pool({ connectionString: databaseUrl, ...queuePoolOptions });
    this.pool.on('error', onError);
    const open = (name: QueueName): Queue => {
      const connection = this.forwardingPool() as unknown as QueueOptions['connection'];
      return new Queue(name, { connection, skipMetasUpdate: true }, createSteadyPostgresBackend as never);
    };
    this.queues = new Queues(open, onError);
  }

  async add<Q extends QueueName>(
    manager: EntityManager,
    queue: Q,
    jobs: readonly NewJob<Q>[],
  ): Promise<() => Promise<void>> {
    // The queue checks its schema once, which must happen before and outside the caller's transaction.
    await this.queues.ready(queue);
    const runner = manager.queryRunner;
    if (!runner?.isTransactionActive) throw new Error('Jobs are added inside a transaction.');
    const client = (await runner.connect()) as { query: Query };
    await client.query(`SET LOCAL search_path = ${searchPath}`);
    await this.transaction.run(
      (text, params) => client.query(text, params),
      () => this.queues.add(queue, jobs),
    );
    await client.query('SET LOCAL search_path TO DEFAULT');
    return async () => undefined;
  }

  addNow<Q extends QueueName>(queue: Q, jobs: readonly NewJob<Q>[]): Promise<void> {
    return this.queues.add(queue, jobs);
  }

  presence(queue: QueueName, jobId: string): Promise<JobPresence> {
    return this.queues.presence(queue, jobId);
  }

  counts(queue: QueueName): Promise<Record<string, number>> {
    return this.queues.counts(queue);
  }

  async close(): Promise<void> {
    await this.queues.close();
    await this.pool.end();
  }

  /** The pool for the queue: it forwards to the caller's transaction if there is one, else to the real pool. */
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
