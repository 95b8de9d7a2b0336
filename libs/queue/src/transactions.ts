import { type Enclosing, enclosing } from '@app/database';
import type { Pool } from 'pg';
import type { DataSource, EntityManager } from 'typeorm';

/** A prepared statement: a connection parses it once and then knows it by its name. */
export interface Statement {
  name: string;
  text: string;
  values: unknown[];
}

/** A pool, or one connection. */
interface StatementClient {
  query(statement: Statement): Promise<{ rows: unknown[] }>;
}

/** Hooks around the transaction that encloses a call. */
export interface EnclosingSteps {
  /** Awaited before a connection is taken; the returned function is called when the connection was given back. */
  turn?: () => Promise<() => void>;
  /** Runs first in the transaction. */
  first?: (manager: EntityManager) => Promise<void>;
}

const deadlockDetected = '40P01';
const deadlockRepeats = 3;

/** Runs `work` after the commit if `Transactions.enclose` encloses this call; otherwise now. */
export async function afterCommit(work: () => Promise<void>): Promise<void> {
  const outer = enclosing.getStore();
  if (outer) outer.afterCommit.push(work);
  else await work();
}

/** Runs work in one transaction. */
export class Transactions {
  constructor(private readonly dataSource: DataSource) {}

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
    const client = runner ? ((await runner.connect()) as StatementClient) : poolOf(this.dataSource);
    return (await client.query(statement)).rows as Row[];
  }

  /**
   * Commits the rows of `work`; if it throws, none is kept. Inside `enclose` it is part of that transaction. After a
   * deadlock `work` is repeated, at most three times, so it must have no other effects.
   */
  run<T>(work: (manager: EntityManager) => Promise<T>): Promise<T> {
    const once = (): Promise<T> => this.dataSource.transaction(work);
    return this.isEnclosed ? once() : repeatAfterDeadlock(once);
  }

  /**
   * Makes everything that `work` writes through the data source, its repositories and `run` one transaction, committed
   * when `work` is done. It begins with the first transaction or the first statement that is not a SELECT; until then
   * `work` holds no connection, so slow steps come first. For sequential calls only: `work` must not query in parallel.
   * After a deadlock it is repeated, as in `run`.
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
      for (const after of outer.afterCommit) await after();
      return result;
    });
  }

  /** Runs work outside the enclosing transaction: slow work, which must not hold it open, and its own writes. */
  runOutside<T>(work: () => Promise<T>): Promise<T> {
    return enclosing.exit(work);
  }
}

function poolOf(dataSource: DataSource): StatementClient {
  return (dataSource.driver as unknown as { master: Pool }).master;
}

/** After a deadlock PostgreSQL ends one of the transactions and lets the others continue: a second run can succeed. */
async function repeatAfterDeadlock<T>(transaction: () => Promise<T>): Promise<T> {
  for (let left = deadlockRepeats; ; left--)
    try {
      return await transaction();
    } catch (error) {
      if ((error as { code?: string }).code !== deadlockDetected || left === 0) throw error;
    }
}

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
