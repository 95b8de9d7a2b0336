import { Global, Module } from '@nestjs/common';
import { LongRequests } from './long-requests';

/** Bounds on what a key holds open. */
@Global()
@Module({ providers: [LongRequests], exports: [LongRequests] })
export class LongRequestsModule {}
