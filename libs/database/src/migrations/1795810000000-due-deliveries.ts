import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Deliveries are due rows that a process claims for a while; they have no jobs. */
export class DueDeliveries1795810000000 implements MigrationInterface {
  name = 'DueDeliveries1795810000000';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE "webhook_deliveries" DROP COLUMN "enqueued",
        ADD "due_since" timestamp(3) with time zone, ADD "claimed_until" timestamp(3) with time zone`);
    await queryRunner.query(`UPDATE "webhook_deliveries" SET "due_since" = "next_attempt_at"`);
    await queryRunner.query(`DROP INDEX "webhook_deliveries_due_idx"`);
    await queryRunner.query(`
      CREATE INDEX "webhook_deliveries_due_idx" ON "webhook_deliveries" ("owner_id", "next_attempt_at")
      WHERE "status" = 'pending'`);
  }

  public async down(): Promise<void> {
    throw new Error('There is no way back from here.');
  }
}
