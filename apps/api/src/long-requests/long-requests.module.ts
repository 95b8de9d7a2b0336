import { ApiKey } from '@app/domain';
import { Global, Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { KeyWatch } from './key-watch';
import { LongRequests } from './long-requests';
import { RequestTurns } from './request-turns';

/** Limits on the requests that a key has open, and their end when the key is revoked. */
@Global()
@Module({
  imports: [TypeOrmModule.forFeature([ApiKey])],
  providers: [LongRequests, RequestTurns, KeyWatch],
  exports: [LongRequests, RequestTurns],
})
export class LongRequestsModule {}
