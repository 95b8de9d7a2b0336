import { entities } from '@app/domain';
import type { DataSourceOptions } from 'typeorm';
import { DataSource } from 'typeorm';
import { migrations } from './migrations';

/** TypeORM's options for the service's database. The schema moves by migrations only. */
export function dataSourceOptions(databaseUrl: string, options: { poolSize?: number; applicationName?: string } = {}) {
  return {
    type: 'postgres',
    url: databaseUrl,
    entities,
    migrations,
    migrationsTableName: 'migrations',
    migrationsTransactionMode: 'all',
    synchronize: false,
    poolSize: options.poolSize ?? 10,
    applicationName: options.applicationName ?? 'darkroom',
    extra: {
      connectionTimeoutMillis: 10_000,
      keepAlive: true,
      // A process that freezes in a transaction must not hold its locks against the others.
      idle_in_transaction_session_timeout: 60_000,
    },
  } as const satisfies DataSourceOptions;
}

/** A data source that is not connected yet. */
export function createDataSource(databaseUrl: string, options?: Parameters<typeof dataSourceOptions>[1]): DataSource {
  return new DataSource(dataSourceOptions(databaseUrl, options));
}
