import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The base model that uploaded weights were checked against. */
export class WeightsBase1795740000000 implements MigrationInterface {
  name = 'WeightsBase1795740000000';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE "finetunes" ADD "weights_base" character varying(128)`);
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE "finetunes" DROP COLUMN "weights_base"`);
  }
}
