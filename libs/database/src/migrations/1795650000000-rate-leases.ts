import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * A bucket hands out several tokens at a time. `granted` stays, because a process of the previous version may still
 * write it.
 */
export class RateLeases1795650000000 implements MigrationInterface {
  name = 'RateLeases1795650000000';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE "rate_buckets" ADD "taken" integer NOT NULL DEFAULT 0`);
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE "rate_buckets" DROP COLUMN "taken"`);
  }
}
