import 'reflect-metadata';
import { type Config, CONFIG } from '@app/config';
import { DatabaseContact } from '@app/database';
import { Transactions } from '@app/queue';
import { Global, Module } from '@nestjs/common';
import { TaskSweep } from './task-sweep';
import { Tasks } from './tasks';
import { Trainings } from './trainings';

/** The moves of a task, and the sweep that makes those of dead workers. */
@Global()
@Module({
  providers: [
    {
      provide: Tasks,
      inject: [Transactions, DatabaseContact, CONFIG],
      useFactory: (
        transactions: Transactions,
        contact: DatabaseContact,
        { maxConcurrentPerKey, storageMbPerKey }: Config,
      ) => new Tasks(transactions, contact, maxConcurrentPerKey, storageMbPerKey),
    },
    {
      provide: Trainings,
      inject: [Transactions, CONFIG],
      useFactory: (transactions: Transactions, { maxTrainingsPerKey }: Config) =>
        new Trainings(transactions, maxTrainingsPerKey),
    },
    TaskSweep,
  ],
  exports: [Tasks, TaskSweep, Trainings],
})
export class TasksModule {}
