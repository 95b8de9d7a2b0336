import { entities } from '@app/domain';
import { type DataSource, type DataSourceOptions, DefaultNamingStrategy } from 'typeorm';
import { JoiningDataSource } from './enclosing';
import { migrations } from './migrations';
import { poolOptions, type SessionLimits } from './pool-options';

export interface ConnectionOptions extends SessionLimits {
  poolSize?: number;
  applicationName?: string;
}

/** Columns are named as the properties of the entities, in snake case, and primary keys as PostgreSQL names them. */
class SnakeCase extends DefaultNamingStrategy {
  override columnName(propertyName: string, customName: string): string {
    return customName || propertyName.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  }

  override primaryKeyName(table: Parameters<DefaultNamingStrategy['primaryKeyName']>[0]): string {
    return `${this.getTableName(table)}_pkey`;
  }
}

/** TypeORM's options for the service's database. Only migrations change the schema. */
export function dataSourceOptions(databaseUrl: string, options: ConnectionOptions = {}) {
  return {
    type: 'postgres',
    url: databaseUrl,
    entities,
    namingStrategy: new SnakeCase(),
    migrations,
    migrationsTableName: 'migrations',
    // A migration with a statement that cannot run in a transaction declares that itself.
    migrationsTransactionMode: 'each',
    synchronize: false,
    poolSize: options.poolSize ?? 10,
    applicationName: options.applicationName ?? 'darkroom',
    extra: {
      // Opening a connection costs as much as a hundred statements, and a new one has no prepared statements.
      idleTimeoutMillis: 300_000,
      ...poolOptions(options),
    },
  } as const satisfies DataSourceOptions;
}

/** A data source that is not connected yet. */
export function createDataSource(databaseUrl: string, options?: ConnectionOptions): DataSource {
  return new JoiningDataSource(dataSourceOptions(databaseUrl, options));
}
