import 'reflect-metadata';
import { type Config, CONFIG, databaseUrlOf } from '@app/config';
import { type DynamicModule, Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { dataSourceOptions } from './data-source';
import { JoiningDataSource } from './enclosing';
import { statementTimeoutMs } from './pool-options';

/** The connections to the database, as TypeORM's data source. */
@Module({})
export class DatabaseModule {
  /** @param applicationName the name of this process in the database's list of connections. */
  static forRoot({ applicationName, poolSize }: { applicationName: string; poolSize: number }): DynamicModule {
    const dataSource = TypeOrmModule.forRootAsync({
      inject: [CONFIG],
      useFactory: (config: Config) => ({
        ...dataSourceOptions(databaseUrlOf(config), { applicationName, poolSize, statementTimeoutMs }),
        retryAttempts: 5,
        retryDelay: 500,
      }),
      dataSourceFactory: async (options) => new JoiningDataSource(options!),
    });
    return { module: DatabaseModule, imports: [dataSource] };
  }
}
