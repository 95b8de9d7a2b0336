import type { Config } from '@app/config';
import { CONFIG, databaseUrlOf } from '@app/config';
import { ApiKey, IdempotentReply } from '@app/domain';
import { JsonLogger } from '@app/observability';
import type { JobBackEnd } from '@app/queue';
import { JOB_BACK_END, Transactions } from '@app/queue';
import { TaskIntake } from '@app/tasks';
import type { OnApplicationShutdown } from '@nestjs/common';
import { Global, Module } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { TypeOrmModule } from '@nestjs/typeorm';
import { OpenRequests } from '../defence/open-requests';
import { ApiKeyGuard } from './api-key.guard';
import { ApiKeysService } from './api-keys.service';
import { Cursors } from './cursors';
import { Drain } from './drain';
import { KeptReplies } from './idempotency.interceptor';
import { Notifications } from './notifications';
import { RateLimiter } from './rate-limiter';
import { RevokedKeys } from './revoked-keys';

/** Everything that all features share: bearer keys on every route that is not public, and the end of the process. */
@Global()
@Module({
  imports: [TypeOrmModule.forFeature([ApiKey, IdempotentReply])],
  providers: [
    ApiKeysService,
    RateLimiter,
    { provide: APP_GUARD, useClass: ApiKeyGuard },
    Cursors,
    Drain,
    KeptReplies,
    Notifications,
    OpenRequests,
    RevokedKeys,
    {
      provide: TaskIntake,
      inject: [CONFIG, Transactions, JOB_BACK_END, JsonLogger],
      useFactory: (config: Config, transactions: Transactions, jobs: JobBackEnd, logger: JsonLogger) =>
        new TaskIntake(databaseUrlOf(config), transactions, jobs, (error) =>
          logger.warnSparingly('the intake failed', { reason: String(error) }),
        ),
    },
  ],
  exports: [Cursors, Drain, KeptReplies, Notifications, OpenRequests, TaskIntake],
})
export class HttpModule implements OnApplicationShutdown {
  constructor(private readonly intake: TaskIntake) {}

  async onApplicationShutdown(): Promise<void> {
    await this.intake.close();
  }
}
