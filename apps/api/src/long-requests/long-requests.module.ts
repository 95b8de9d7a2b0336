import { ApiKey } from '@app/domain';
import { Global, Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { KeyWatch } from './key-watch';
import { LongRequests } from './long-requests';

/** Bounds on what a key holds open, and its end when the key is revoked. */
@Global()
@Module({
  imports: [TypeOrmModule.forFeature([ApiKey])],
  providers: [LongRequests, KeyWatch],
  exports: [LongRequests],
})
export class LongRequestsModule {}
