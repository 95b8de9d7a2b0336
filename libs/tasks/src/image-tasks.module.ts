import 'reflect-metadata';
import type { Config } from '@app/config';
import { CONFIG } from '@app/config';
import { DatabaseContact } from '@app/database';
import { Transactions } from '@app/queue';
import { Global, Module } from '@nestjs/common';
import { ImageTaskLifeCycle } from './image-task-life-cycle';

/** The moves of an image task. */
@Global()
@Module({
  providers: [
    {
      provide: ImageTaskLifeCycle,
      inject: [Transactions, DatabaseContact, CONFIG],
      useFactory: (transactions: Transactions, contact: DatabaseContact, { maxConcurrentPerKey }: Config) =>
        new ImageTaskLifeCycle(transactions, contact, maxConcurrentPerKey),
    },
  ],
  exports: [ImageTaskLifeCycle],
})
export class ImageTasksModule {}
