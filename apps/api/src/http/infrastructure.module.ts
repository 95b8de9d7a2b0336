import type { Config } from '@app/config';
import { databaseUrlOf } from '@app/config';
import { CONFIG } from '@app/config';
import { JOB_BACK_END } from '@app/queue';
import { TaskIntake } from '@app/tasks';
import { JsonLogger } from '@app/observability';
import type { JobBackEnd } from '@app/queue';
import { Transactions } from '@app/queue';
import type { OnApplicationShutdown } from '@nestjs/common';
import { Global, Module } from '@nestjs/common';
import { Cursors } from './cursors';
import { Drain } from './drain';
import { Notifications } from './notifications';

/**
 * Shared by all features of this process: the intake of tasks, the listener for notifications, the cursors of lists,
 * and the drain at the end of the process.
 */
@Global()
@Module({
  providers: [
    Cursors,
    Drain,
    Notifications,
    {
      provide: TaskIntake,
      inject: [CONFIG, Transactions, JOB_BACK_END, JsonLogger],
      useFactory: (config: Config, transactions: Transactions, jobs: JobBackEnd, logger: JsonLogger) =>
        new TaskIntake(databaseUrlOf(config), transactions, jobs, (error) =>
          logger.warnSparingly('the intake failed', { reason: String(error) }),
        ),
    },
  ],
  exports: [Cursors, Drain, Notifications, TaskIntake],
})
export class InfrastructureModule implements OnApplicationShutdown {
  constructor(private readonly intake: TaskIntake) {}

  async onApplicationShutdown(): Promise<void> {
    await this.intake.close();
  }
}
