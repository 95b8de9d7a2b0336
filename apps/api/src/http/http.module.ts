import { ApiKey, IdempotentReply } from '@app/domain';
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
  ],
  exports: [Cursors, Drain, KeptReplies, Notifications, OpenRequests],
})
export class HttpModule {}
