import 'reflect-metadata';
import type { Config } from '@app/config';
import { CONFIG, databaseUrlOf } from '@app/config';
import { ClockWatch, DatabaseContact, databaseNow } from '@app/database';
import { JsonLogger } from '@app/observability';
import type { BeforeApplicationShutdown, DynamicModule, OnApplicationShutdown } from '@nestjs/common';
import { Global, Module } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { openQueueConnection } from './queue-connection';
import { Transactions } from './transactions';
import { WakeUps } from './wake-ups';

/** Wake-ups, transactions and the clock check: no task is claimed while it fails. */
@Global()
@Module({})
export class QueueModule implements BeforeApplicationShutdown, OnApplicationShutdown {
  /** @param now this machine's clock, in milliseconds since the epoch. */
  static forRoot({ now }: { now?: () => number } = {}): DynamicModule {
    return {
      module: QueueModule,
      providers: [
        {
          provide: WakeUps,
          inject: [CONFIG, JsonLogger],
          useFactory: (config: Config, logger: JsonLogger) => {
            const report = ({ message }: Error): void => logger.warnSparingly('the queue failed', { reason: message });
            return new WakeUps(openQueueConnection(config, databaseUrlOf(config), report), report);
          },
        },
        {
          provide: Transactions,
          inject: [DataSource],
          useFactory: (dataSource: DataSource) => new Transactions(dataSource),
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
      exports: [WakeUps, Transactions, ClockWatch, DatabaseContact],
    };
  }

  constructor(
    private readonly wakeUps: WakeUps,
    private readonly clock: ClockWatch,
  ) {}

  beforeApplicationShutdown(): void {
    this.clock.stop();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.wakeUps.close();
  }
}
