import type { MigrationInterface, QueryRunner } from 'typeorm';
import { createIndexConcurrently } from './index-concurrently';

/** Index to find the replies of a record when it is deleted. */
export class RepliesByRecord1795650120000 implements MigrationInterface {
  name = 'RepliesByRecord1795650120000';
  transaction = false as const;

  public async up(queryRunner: QueryRunner): Promise<void> {
    await createIndexConcurrently(
      queryRunner,
      'idempotent_replies_records_idx',
      '"idempotent_replies" USING gin ("record_ids")',
    );
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP INDEX "public"."idempotent_replies_records_idx"`);
  }
}
