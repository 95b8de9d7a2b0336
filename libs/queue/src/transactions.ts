import { AsyncLocalStorage } from 'node:async_hooks';
import type { Pool } from 'pg';
import type { DataSource, EntityManager, QueryRunner } from 'typeorm';
import type { JobBackEnd } from './job-back-end';
import type { NewJob, QueueName } from './jobs';

/** A statement that a connection parses and plans once and then knows by its name. */
export interface Statement {
  name: string;
  text: string;
  values: unknown[];
}

/** What runs statements: a pool, or one connection. */
export interface StatementClient {
  query(statement: Statement): Promise<{ rows: unknown[] }>;
}

/** A database transaction that can also make jobs: rows and jobs are there together or not at all. */
export interface JobTransaction {
  readonly manager: EntityManager;
  /** The driver's own connection, for statements that are prepared under a name. */
  connection(): Promise<StatementClient>;
  enqueue<Q extends QueueName>(queue: Q, ...jobs: NewJob<Q>[]): Promise<void>;
}

/** The transaction that encloses all work of an asynchronous call. */
interface Enclosing {
  runner: QueryRunner;
  afterCommit: (() => Promise<void>)[];
}

const deadlockDetected = '40P01';
const deadlockRepeats = 3;

const enclosing = new AsyncLocalStorage<Enclosing>();

/** Runs work in one transaction of rows and jobs. */
export class Transactions {
  constructor(
    private readonly dataSource: DataSource,
    private readonly jobs: JobBackEnd,
    private readonly onError: (error: unknown) => void,
  ) {
    joinEnclosing(dataSource);
  }

  /** For a single statement, which is a transaction of its own. */
  get manager(): EntityManager {
    return this.dataSource.manager;
  }

  /** Whether this call is a part of `enclose`. */
  get isEnclosed(): boolean {
    return enclosing.getStore() !== undefined;
  }

  /** One statement that is prepared under its name, on any connection, or on that of the transaction that encloses this call. */
  async query<Row>(statement: Statement): Promise<Row[]> {
    const outer = enclosing.getStore();
    const client = outer ? await connectionOf(outer.runner.manager) : poolOf(this.dataSource);
    return (await client.query(statement)).rows as Row[];
  }

  /**
   * Commits what `work` wrote and the jobs it made; an error of `work` undoes both. Inside `enclose` it is a part of that.
   * After a deadlock `work` is done once more: it must leave nothing behind but what is undone.
   */
  async run<T>(work: (transaction: JobTransaction) => Promise<T>): Promise<T> {
    const outer = enclosing.getStore();
    const once = async (): Promise<T> => {
      const afterCommit: (() => Promise<void>)[] = [];
      const result = await this.dataSource.transaction((manager) =>
        work({
          manager,
          connection: () => connectionOf(manager),
          enqueue: async (queue, ...jobs) => {
            if (jobs.length > 0) afterCommit.push(await this.jobs.add(manager, queue, jobs));
          },
        }),
      );
      if (outer) outer.afterCommit.push(...afterCommit);
      else await this.finish(afterCommit);
      return result;
    };
    return outer ? once() : repeatAfterDeadlock(once);
  }

  /**
   * Makes every query that `work` makes through the data source, its repositories and `run` a part of one transaction,
   * committed when `work` is done. For one call at a time on one connection: `work` must not query in parallel.
   * After a deadlock it is done once more, as in `run`.
   */
  enclose<T>(work: (manager: EntityManager) => Promise<T>): Promise<T> {
    return repeatAfterDeadlock(async () => {
      const afterCommit: (() => Promise<void>)[] = [];
      const result = await this.dataSource.transaction((manager) => {
        const runner = manager.queryRunner;
        if (!runner) throw new Error('A transaction has a connection of its own.');
        return enclosing.run({ runner, afterCommit }, () => work(manager));
      });
      await this.finish(afterCommit);
      return result;
    });
  }

  /** The rows are committed: a job that could not be added now is the sweeper's to add, not the caller's failure. */
  private async finish(afterCommit: readonly (() => Promise<void>)[]): Promise<void> {
    for (const add of afterCommit) await add().catch(this.onError);
  }
}

async function connectionOf({ queryRunner }: EntityManager): Promise<StatementClient> {
  if (!queryRunner) throw new Error('A transaction has a connection of its own.');
  return (await queryRunner.connect()) as StatementClient;
}

function poolOf(dataSource: DataSource): StatementClient {
  return (dataSource.driver as unknown as { master: Pool }).master;
}

/** PostgreSQL ends one of the transactions that wait for each other; the others go on, and so it has its way the next time. */
async function repeatAfterDeadlock<T>(transaction: () => Promise<T>): Promise<T> {
  for (let left = deadlockRepeats; ; left--)
    try {
      return await transaction();
    } catch (error) {
      if ((error as { code?: string }).code !== deadlockDetected || left === 0) throw error;
    }
}

/** Hands out the enclosing transaction's connection where there is one; only the transaction itself gives it back. */
function joinEnclosing(dataSource: DataSource): void {
  const create = dataSource.createQueryRunner.bind(dataSource);
  dataSource.createQueryRunner = (mode) => {
    const outer = enclosing.getStore();
    if (!outer) return create(mode);
    return new Proxy(outer.runner, {
      get(target, property) {
        if (property === 'release') return async () => undefined;
        const value: unknown = Reflect.get(target, property, target);
        return typeof value === 'function' ? (value as (...parameters: unknown[]) => unknown).bind(target) : value;
      },
    });
  };
}
