import { ApiKey } from '@app/domain';
import { Global, Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { RevokedKeys } from './revoked-keys';
import { LongRequests } from './long-requests';
import { RequestTurns } from './request-turns';

/** Limits on the requests that a key has open, and their end when the key is revoked. */
@Global()
@Module({
  imports: [TypeOrmModule.forFeature([ApiKey])],
  providers: [LongRequests, RequestTurns, RevokedKeys],
  exports: [LongRequests, RequestTurns],
})
export class OpenRequestsModule {}
