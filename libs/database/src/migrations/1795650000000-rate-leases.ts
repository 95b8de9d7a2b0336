import type { MigrationInterface, QueryRunner } from 'typeorm';

/** A bucket hands out several tokens at a time. Its rows are worth nothing, so the table is emptied rather than rewritten. */
export class RateLeases1795650000000 implements MigrationInterface {
  name = 'RateLeases1795650000000';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`TRUNCATE "rate_buckets"`);
    await queryRunner.query(`ALTER TABLE "rate_buckets" DROP COLUMN "granted", ADD "granted" integer NOT NULL`);
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`TRUNCATE "rate_buckets"`);
    await queryRunner.query(`ALTER TABLE "rate_buckets" DROP COLUMN "granted", ADD "granted" boolean NOT NULL`);
  }
}
