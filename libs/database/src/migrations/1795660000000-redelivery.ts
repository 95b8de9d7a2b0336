import type { MigrationInterface, QueryRunner } from 'typeorm';

/** When somebody last asked for a redelivery. */
export class Redelivery1795660000000 implements MigrationInterface {
  name = 'Redelivery1795660000000';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE "webhook_deliveries" ADD "asked_at" TIMESTAMP(3) WITH TIME ZONE`);
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE "webhook_deliveries" DROP COLUMN "asked_at"`);
  }
}
