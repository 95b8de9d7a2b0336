import 'reflect-metadata';
import type { Config } from '@app/config';
import { CONFIG, databaseUrlOf } from '@app/config';
import { ClockWatch, DatabaseContact, databaseNow } from '@app/database';
import { JsonLogger } from '@app/observability';
import { BullModule } from '@nestjs/bullmq';
import type { BeforeApplicationShutdown, DynamicModule, OnApplicationShutdown } from '@nestjs/common';
import { Global, Inject, Module } from '@nestjs/common';
import { DataSource } from 'typeorm';
import type { JobBackEnd } from './job-back-end';
import { queueConnection } from './job-back-end';
import { openJobBackEnd } from './open-job-back-end';
import { Transactions } from './transactions';

/** Injects the back end of the queues. */
export const JOB_BACK_END = Symbol('JOB_BACK_END');

/** Jobs, the transactions that add them with their rows, and the clock check: no job is taken while it fails. */
@Global()
@Module({
  imports: [
    BullModule.forRootAsync({
      inject: [CONFIG],
      useFactory: (config: Config) => ({ connection: queueConnection(config, databaseUrlOf(config)).connection }),
    }),
  ],
})
export class QueueModule implements BeforeApplicationShutdown, OnApplicationShutdown {
  /** @param now this machine's clock, in milliseconds since the epoch. */
  static forRoot({ now }: { now?: () => number } = {}): DynamicModule {
    return {
      module: QueueModule,
      providers: [
        {
          provide: JOB_BACK_END,
          inject: [CONFIG, JsonLogger],
          useFactory: (config: Config, logger: JsonLogger) =>
            openJobBackEnd(config, databaseUrlOf(config), ({ message }) =>
              logger.warnSparingly('the queue failed', { reason: message }),
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
          provide: ClockWatch,
          inject: [DataSource, JsonLogger],
          useFactory: async (dataSource: DataSource, logger: JsonLogger) => {
            const clock = new ClockWatch({
              databaseNow: () => databaseNow(dataSource),
              report: (sentence, details) => logger.warn(sentence, details),
              ...(now && { now }),
            });
            await clock.start();
            return clock;
          },
        },
        { provide: DatabaseContact, inject: [ClockWatch], useFactory: ({ contact }: ClockWatch) => contact },
      ],
      exports: [JOB_BACK_END, Transactions, ClockWatch, DatabaseContact],
    };
  }

  constructor(
    @Inject(JOB_BACK_END) private readonly jobs: JobBackEnd,
    private readonly clock: ClockWatch,
  ) {}

  beforeApplicationShutdown(): void {
    this.clock.stop();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.jobs.close();
  }
}
