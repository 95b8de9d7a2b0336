import type { QueryRunner } from 'typeorm';
import { ForwardMigration } from './forward-migration';
import { createIndexConcurrently } from './index-concurrently';

/** Finds Generations that nobody has asked for again. */
export class UnansweredIndex1796260000000 extends ForwardMigration {
  readonly name = 'UnansweredIndex1796260000000';
  readonly transaction = false as const;

  async up(queryRunner: QueryRunner): Promise<void> {
    await createIndexConcurrently(
      queryRunner,
      'idempotent_replies_unanswered_idx',
      `idempotent_replies (created_at) WHERE status = 0 AND record_ids <> '{}'`,
    );
  }
}
