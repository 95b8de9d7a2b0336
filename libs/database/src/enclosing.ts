import { AsyncLocalStorage } from 'node:async_hooks';
import { DataSource, type QueryRunner, type ReplicationMode } from 'typeorm';

/** The transaction that encloses an asynchronous call, from its first write on. */
export interface Enclosing {
  /** Undefined until the transaction has begun. */
  runner?: QueryRunner;
  begin(runner: QueryRunner): Promise<void>;
  afterCommit: (() => Promise<void>)[];
}

export const enclosing = new AsyncLocalStorage<Enclosing>();

/** Returns the enclosing transaction's connection if there is one; only the transaction itself may release it. */
export class JoiningDataSource extends DataSource {
  override createQueryRunner(mode?: ReplicationMode): QueryRunner {
    const outer = enclosing.getStore();
    return outer ? joined(outer, outer.runner ?? super.createQueryRunner(mode)) : super.createQueryRunner(mode);
  }
}

/** A connection for queries that are part of the enclosing transaction; the first that writes begins it. */
function joined(outer: Enclosing, runner: QueryRunner): QueryRunner {
  const begin = async (): Promise<void> => {
    if (!outer.runner) await outer.begin(runner);
  };
  const own: Partial<QueryRunner> = {
    release: async () => {
      if (outer.runner !== runner) await runner.release();
    },
    startTransaction: async (isolation) => {
      await begin();
      await runner.startTransaction(isolation);
    },
    query: async (statement: string, ...rest: unknown[]) => {
      if (!/^\s*SELECT\b/i.test(statement)) await begin();
      return (runner.query as (...parameters: unknown[]) => Promise<never>).call(runner, statement, ...rest);
    },
  };
  return new Proxy(runner, {
    get(target, property) {
      const replaced: unknown = Reflect.get(own, property);
      const value: unknown = replaced ?? Reflect.get(target, property, target);
      return typeof value === 'function' ? (value as (...parameters: unknown[]) => unknown).bind(target) : value;
    },
  });
}
