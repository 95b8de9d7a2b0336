import type { Enclosing } from '@app/database';
import { enclosing } from '@app/database';
import type { Pool } from 'pg';
import type { DataSource, EntityManager } from 'typeorm';
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

/** What is done when the transaction that encloses a call begins. */
export interface EnclosingSteps {
  /** Awaited before a connection is taken; what it returns is called when the connection has been given back. */
  turn?: () => Promise<() => void>;
  /** Done first in the transaction. */
  first?: (manager: EntityManager) => Promise<void>;
}

const deadlockDetected = '40P01';
const deadlockRepeats = 3;

/** Does what would hold the connection for long after the commit where `Transactions.enclose` encloses this call, else now. */
export async function afterCommit(work: () => Promise<void>): Promise<void> {
  const outer = enclosing.getStore();
  if (outer) outer.afterCommit.push(work);
  else await work();
}

/** Runs work in one transaction of rows and jobs. */
export class Transactions {
  constructor(
    private readonly dataSource: DataSource,
    private readonly jobs: JobBackEnd,
    private readonly onError: (error: unknown) => void,
  ) {}

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
    const runner = enclosing.getStore()?.runner;
    const client = runner ? await connectionOf(runner.manager) : poolOf(this.dataSource);
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
   * Makes what `work` writes through the data source, its repositories and `run` one transaction, committed when `work` is done. It
   * begins with the first transaction or the first statement that is no SELECT, and every later query is a part of it: until then
   * `work` holds no connection, so that what takes long comes first. For one call at a time on one connection: `work` must not
   * query in parallel. After a deadlock it is done once more, as in `run`.
   */
  enclose<T>(work: () => Promise<T>, { turn, first }: EnclosingSteps = {}): Promise<T> {
    return repeatAfterDeadlock(async () => {
      let endTurn: (() => void) | undefined;
      const outer: Enclosing = {
        afterCommit: [],
        begin: async (runner) => {
          endTurn = await turn?.();
          outer.runner = runner;
          await runner.startTransaction();
          await first?.(runner.manager);
        },
      };
      const result = await ended(outer, () => enclosing.run(outer, work)).finally(() => endTurn?.());
      await this.finish(outer.afterCommit);
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

/** Does the work, and ends the transaction where it has begun one. */
async function ended<T>(outer: Enclosing, work: () => Promise<T>): Promise<T> {
  try {
    const result = await work();
    await outer.runner?.commitTransaction();
    return result;
  } catch (error) {
    // The first error tells more than one of the rollback.
    await outer.runner?.rollbackTransaction().catch(() => undefined);
    throw error;
  } finally {
    await outer.runner?.release();
  }
}
