import 'reflect-metadata';
import { type Config, CONFIG, databaseUrlOf } from '@app/config';
import { ClockWatch, DatabaseContact, databaseNow } from '@app/database';
import { JsonLogger } from '@app/observability';
import { BullModule, getQueueToken } from '@nestjs/bullmq';
import { type BeforeApplicationShutdown, type DynamicModule, Global, Module } from '@nestjs/common';
import { setDefaultBackendFactory } from 'bullmq';
import { DataSource } from 'typeorm';
import { openQueueConnection, type QueueConnection } from './queue-connection';
import { Transactions } from './transactions';
import { type LookQueue, queueName, queueOptions, WakeUps } from './wake-ups';

const QUEUE_CONNECTION = Symbol('QUEUE_CONNECTION');

const reportTo =
  (logger: JsonLogger) =>
  ({ message }: Error): void =>
    logger.warnSparingly('the queue failed', { reason: message });

/** The connection that the queue and its listener share. */
@Module({
  providers: [
    {
      provide: QUEUE_CONNECTION,
      inject: [CONFIG, JsonLogger],
      useFactory: (config: Config, logger: JsonLogger) =>
        openQueueConnection(config, databaseUrlOf(config), reportTo(logger)),
    },
  ],
  exports: [QUEUE_CONNECTION],
})
class QueueConnectionModule {}

/** Wake-ups, transactions and the clock check: no task is claimed while it fails. */
@Global()
@Module({})
export class QueueModule implements BeforeApplicationShutdown {
  /** @param now in milliseconds since the epoch. */
  static forRoot({ now }: { now?: () => number } = {}): DynamicModule {
    return {
      module: QueueModule,
      imports: [
        QueueConnectionModule,
        BullModule.registerQueueAsync({
          name: queueName,
          imports: [QueueConnectionModule],
          inject: [QUEUE_CONNECTION],
          useFactory: ({ connection, factory }: QueueConnection) => {
            // Nest's queues have no other way to be given a back end.
            setDefaultBackendFactory(factory);
            return { connection, ...queueOptions };
          },
        }),
      ],
      providers: [
        {
          provide: WakeUps,
          inject: [getQueueToken(queueName), QUEUE_CONNECTION, JsonLogger],
          useFactory: (queue: LookQueue, connection: QueueConnection, logger: JsonLogger) =>
            new WakeUps(queue, connection, reportTo(logger)),
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

  async beforeApplicationShutdown(): Promise<void> {
    this.clock.stop();
    await this.wakeUps.close();
  }
}
