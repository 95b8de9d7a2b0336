import { IdempotentReply } from '@app/domain';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { ArrayContains, Repository } from 'typeorm';

/** Replies that are kept under an `Idempotency-Key`. */
@Injectable()
export class KeptReplies {
  constructor(@InjectRepository(IdempotentReply) private readonly replies: Repository<IdempotentReply>) {}

  /**
   * Replaces the kept body of the request that made a record by what it got after it had waited; nothing is kept again
   * that has been deleted.
   */
  async renew(ownerId: string, key: string, body: { id: string }): Promise<void> {
    await this.replies.update({ ownerId, key, recordIds: ArrayContains([body.id]) }, { body: JSON.stringify(body) });
  }
}
