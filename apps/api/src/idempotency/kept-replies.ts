import { IdempotentReply } from '@app/domain';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';

/** Replies that are kept under an `Idempotency-Key`. */
@Injectable()
export class KeptReplies {
  constructor(@InjectRepository(IdempotentReply) private readonly replies: Repository<IdempotentReply>) {}

  /** Replaces the kept body of a request with this Idempotency-Key by what it really got, after it had waited; nothing is kept again that has been deleted. */
  async renew(ownerId: string, key: string, body: object): Promise<void> {
    await this.replies.update({ ownerId, key }, { body: JSON.stringify(body) });
  }
}
