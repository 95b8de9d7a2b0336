import type { Enclosing } from '@app/database';
import { enclosing } from '@app/database';
import type { Pool } from 'pg';
import type { DataSource, EntityManager } from 'typeorm';
import type { JobBackEnd } from './job-back-end';
import type { NewJob, QueueName } from './jobs';

/** A prepared statement: a connection parses it once and then knows it by its name. */
export interface Statement {
  name: string;
  text: string;
  values: unknown[];
}

/** Runs statements: a pool, or one connection. */
export interface StatementClient {
  query(statement: Statement): Promise<{ rows: unknown[] }>;
}

/** A database transaction that can also add jobs: rows and jobs are committed together or not at all. */
export interface JobTransaction {
  readonly manager: EntityManager;
  /** The driver's own connection, for named prepared statements. */
  connection(): Promise<StatementClient>;
  enqueue<Q extends QueueName>(queue: Q, ...jobs: NewJob<Q>[]): Promise<void>;
}

/** Hooks around the transaction that encloses a call. */
export interface EnclosingSteps {
  /** Awaited before a connection is taken; the function it returns is called when the connection was given back. */
  turn?: () => Promise<() => void>;
  /** Runs first in the transaction. */
  first?: (manager: EntityManager) => Promise<void>;
}

const deadlockDetected = '40P01';
const deadlockRepeats = 3;

/**
 * Runs slow work after the commit if `Transactions.enclose` encloses this call, so that it does not hold the
 * connection; otherwise now.
 */
export async function afterCommit(work: () => Promise<void>): Promise<void> {
  const outer = enclosing.getStore();
  if (outer) outer.afterCommit.push(work);
  else await work();
}

/** Runs work in one transaction for rows and jobs. */
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

  /** Whether this call is inside `enclose`. */
  get isEnclosed(): boolean {
    return enclosing.getStore() !== undefined;
  }

  /** Runs one prepared statement, on any connection, or on that of the enclosing transaction. */
  async query<Row>(statement: Statement): Promise<Row[]> {
    const runner = enclosing.getStore()?.runner;
    const client = runner ? await connectionOf(runner.manager) : poolOf(this.dataSource);
    return (await client.query(statement)).rows as Row[];
  }

  /**
   * Commits the rows and jobs of `work`; if it throws, neither is kept. Inside `enclose` it is part of that
   * transaction. After a deadlock `work` is repeated, at most three times, so it must have no other effects.
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
   * Makes everything that `work` writes through the data source, its repositories and `run` one transaction, committed
   * when `work` is done. It begins with the first transaction or the first statement that is not a SELECT, and every
   * later query is part of it. Until then `work` holds no connection, so slow steps come first. For sequential calls
   * only: `work` must not query in parallel. After a deadlock it is repeated, as in `run`.
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

  /**
   * The rows are committed, so a job that could not be added now is added by the sweeper and is
   * not the caller's failure.
   */
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

/**
 * After a deadlock PostgreSQL ends one of the transactions and lets the others continue, so a second run can succeed.
 */
async function repeatAfterDeadlock<T>(transaction: () => Promise<T>): Promise<T> {
  for (let left = deadlockRepeats; ; left--)
    try {
      return await transaction();
    } catch (error) {
      if ((error as { code?: string }).code !== deadlockDetected || left === 0) throw error;
    }
}

/** Runs the work, and ends the transaction if one has begun. */
async function ended<T>(outer: Enclosing, work: () => Promise<T>): Promise<T> {
  try {
    const result = await work();
    await outer.runner?.commitTransaction();
    return result;
  } catch (error) {
    // The first error is more useful than one of the rollback.
    await outer.runner?.rollbackTransaction().catch(() => undefined);
    throw error;
  } finally {
    await outer.runner?.release();
  }
}
