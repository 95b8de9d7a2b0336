import { entities } from '@app/domain';
import type { DataSourceOptions } from 'typeorm';
import { DataSource } from 'typeorm';
import { migrations } from './migrations';

export interface ConnectionOptions {
  poolSize?: number;
  applicationName?: string;
  /** What one statement may take; any time by default. */
  statementTimeoutMs?: number;
  /** How long a statement waits for a lock; any time by default. */
  lockTimeoutMs?: number;
}

/** TypeORM's options for the service's database. The schema moves by migrations only. */
export function dataSourceOptions(databaseUrl: string, options: ConnectionOptions = {}) {
  return {
    type: 'postgres',
    url: databaseUrl,
    entities,
    migrations,
    migrationsTableName: 'migrations',
    // A migration whose statement is not allowed in a transaction says so itself.
    migrationsTransactionMode: 'each',
    synchronize: false,
    poolSize: options.poolSize ?? 10,
    applicationName: options.applicationName ?? 'darkroom',
    extra: {
      connectionTimeoutMillis: 10_000,
      keepAlive: true,
      // Opening a connection costs as much as a hundred statements, and the new one knows no prepared statement.
      idleTimeoutMillis: 300_000,
      // A process that freezes in a transaction must not hold its locks against the others.
      idle_in_transaction_session_timeout: 60_000,
      ...(options.statementTimeoutMs && { statement_timeout: options.statementTimeoutMs }),
      ...(options.lockTimeoutMs && { lock_timeout: options.lockTimeoutMs }),
    },
  } as const satisfies DataSourceOptions;
}

/** A data source that is not connected yet. */
export function createDataSource(databaseUrl: string, options?: ConnectionOptions): DataSource {
  return new DataSource(dataSourceOptions(databaseUrl, options));
}
