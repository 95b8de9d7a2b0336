import 'reflect-metadata';
import { type Config, CONFIG } from '@app/config';
import { DatabaseContact } from '@app/database';
import { Transactions } from '@app/queue';
import { Global, Module } from '@nestjs/common';
import { LiveWorkers } from './live-workers';
import { StorageQuota } from './storage-quota';
import { TaskIntake } from './task-intake';
import { TaskSweep } from './task-sweep';
import { Tasks } from './tasks';
import { Trainings } from './trainings';

/** The moves of a task, and the sweep that makes those of dead workers. */
@Global()
@Module({
  providers: [
    {
      provide: Tasks,
      inject: [Transactions, DatabaseContact, CONFIG, StorageQuota],
      useFactory: (
        transactions: Transactions,
        contact: DatabaseContact,
        { maxConcurrentPerKey }: Config,
        quota: StorageQuota,
      ) => new Tasks(transactions, contact, maxConcurrentPerKey, quota),
    },
    {
      provide: Trainings,
      inject: [Transactions, CONFIG],
      useFactory: (transactions: Transactions, { maxTrainingsPerKey }: Config) =>
        new Trainings(transactions, maxTrainingsPerKey),
    },
    LiveWorkers,
    StorageQuota,
    TaskIntake,
    TaskSweep,
  ],
  exports: [LiveWorkers, StorageQuota, TaskIntake, Tasks, TaskSweep, Trainings],
})
export class TasksModule {}
