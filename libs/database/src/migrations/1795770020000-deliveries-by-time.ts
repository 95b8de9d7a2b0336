import type { MigrationInterface, QueryRunner } from 'typeorm';
import { createIndexConcurrently } from './index-concurrently';

/** The deliveries of all keys by status and time, for the operator. */
export class DeliveriesByTime1795770020000 implements MigrationInterface {
  name = 'DeliveriesByTime1795770020000';
  transaction = false as const;

  public async up(queryRunner: QueryRunner): Promise<void> {
    await createIndexConcurrently(
      queryRunner,
      'webhook_deliveries_status_idx',
      `"webhook_deliveries" ("status", "created_at", "id")`,
    );
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP INDEX "public"."webhook_deliveries_status_idx"`);
  }
}
