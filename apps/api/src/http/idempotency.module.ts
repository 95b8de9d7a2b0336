import { IdempotentReply } from '@app/domain';
import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { KeptReplies } from './kept-replies';

/** Replies that are kept under an `Idempotency-Key`. */
@Module({
  imports: [TypeOrmModule.forFeature([IdempotentReply])],
  providers: [KeptReplies],
  exports: [KeptReplies],
})
export class IdempotencyModule {}
