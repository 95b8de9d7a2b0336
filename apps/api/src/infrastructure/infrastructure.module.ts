import type { Config } from '@app/config';
import { dataSourceOptions, statementTimeoutMs } from '@app/database';
import { ImageTaskLifeCycle, TaskIntake } from '@app/image-tasks';
import { JsonLogger } from '@app/observability';
import type { JobBackEnd } from '@app/queue';
import { ClockWatch, databaseNow, openJobBackEnd, queueConnection, Transactions } from '@app/queue';
import { openImageStorage } from '@app/storage';
import { BullModule } from '@nestjs/bullmq';
import type { BeforeApplicationShutdown, DynamicModule, OnApplicationShutdown } from '@nestjs/common';
import { Global, Inject, Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { CONFIG } from '../config.token';
import { IMAGE_STORAGE } from '../storage.token';
import { databaseUrlOf } from './database-url';
import { Notifications } from './notifications';

/** Injects the back end of the queues. */
export const JOB_BACK_END = Symbol('JOB_BACK_END');

/** The configuration, for providers and for the dynamic modules below. */
@Global()
@Module({})
class ConfigModule {
  static forRoot(config: Config): DynamicModule {
    return {
      module: ConfigModule,
      providers: [
        { provide: CONFIG, useValue: config },
        { provide: JsonLogger, useFactory: () => new JsonLogger('api', config.logLevel) },
        { provide: IMAGE_STORAGE, useFactory: () => openImageStorage(config) },
      ],
      exports: [CONFIG, JsonLogger, IMAGE_STORAGE],
    };
  }
}

/** What stands below every feature: configuration, logs, database, queues, storage. */
@Global()
@Module({
  imports: [
    TypeOrmModule.forRootAsync({
      inject: [CONFIG],
      useFactory: (config: Config) => ({
        ...dataSourceOptions(databaseUrlOf(config), {
          applicationName: 'darkroom-api',
          poolSize: 20,
          statementTimeoutMs,
        }),
        retryAttempts: 5,
        retryDelay: 500,
      }),
    }),
    BullModule.forRootAsync({
      inject: [CONFIG],
      useFactory: (config: Config) => ({ connection: queueConnection(config, databaseUrlOf(config)).connection }),
    }),
  ],
  providers: [
    Notifications,
    {
      provide: JOB_BACK_END,
      inject: [CONFIG, JsonLogger],
      useFactory: (config: Config, logger: JsonLogger) =>
        openJobBackEnd(config, databaseUrlOf(config), (error) =>
          logger.warnSparingly('queue connection failed', { reason: error.message }),
        ),
    },
    {
      provide: Transactions,
      inject: [DataSource, JOB_BACK_END, JsonLogger],
      useFactory: (dataSource: DataSource, jobs: JobBackEnd, logger: JsonLogger) =>
        new Transactions(dataSource, jobs, (error) =>
          logger.warnSparingly('a job is left for the sweeper', { reason: String(error) }),
        ),
    },
    {
      provide: TaskIntake,
      inject: [CONFIG, Transactions, JOB_BACK_END, JsonLogger],
      useFactory: (config: Config, transactions: Transactions, jobs: JobBackEnd, logger: JsonLogger) =>
        new TaskIntake(databaseUrlOf(config), transactions, jobs, (error) =>
          logger.warnSparingly('the intake had a failure', { reason: String(error) }),
        ),
    },
    {
      provide: ImageTaskLifeCycle,
      inject: [Transactions, CONFIG],
      useFactory: (transactions: Transactions, { maxConcurrentPerKey }: Config) =>
        new ImageTaskLifeCycle(transactions, maxConcurrentPerKey),
    },
    {
      provide: ClockWatch,
      inject: [DataSource, JsonLogger],
      useFactory: async (dataSource: DataSource, logger: JsonLogger) => {
        const clock = new ClockWatch({
          databaseNow: () => databaseNow(dataSource),
          say: (sentence, details) => logger.warn(sentence, details),
        });
        await clock.start();
        return clock;
      },
    },
  ],
  exports: [Notifications, JOB_BACK_END, Transactions, TaskIntake, ImageTaskLifeCycle, ClockWatch],
})
export class InfrastructureModule implements BeforeApplicationShutdown, OnApplicationShutdown {
  static forRoot(config: Config): DynamicModule {
    return { module: InfrastructureModule, imports: [ConfigModule.forRoot(config)] };
  }

  constructor(
    @Inject(JOB_BACK_END) private readonly jobs: JobBackEnd,
    private readonly intake: TaskIntake,
    private readonly clock: ClockWatch,
  ) {}

  beforeApplicationShutdown(): void {
    this.clock.stop();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.intake.close();
    await this.jobs.close();
  }
}
