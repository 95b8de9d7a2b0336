import 'reflect-metadata';
import { type Config, CONFIG } from '@app/config';
import { DatabaseContact } from '@app/database';
import { Transactions } from '@app/queue';
import { Global, Module } from '@nestjs/common';
import { TaskSweep } from './task-sweep';
import { Tasks } from './tasks';

/** The moves of a task, and the sweep that makes those of dead workers. */
@Global()
@Module({
  providers: [
    {
      provide: Tasks,
      inject: [Transactions, DatabaseContact, CONFIG],
      useFactory: (transactions: Transactions, contact: DatabaseContact, { maxConcurrentPerKey }: Config) =>
        new Tasks(transactions, contact, maxConcurrentPerKey),
    },
    TaskSweep,
  ],
  exports: [Tasks, TaskSweep],
})
export class TasksModule {}
