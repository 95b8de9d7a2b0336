import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Workers say which models their engines have refused, so that requests for them are refused as well. */
export class BrokenModels1795800000000 implements MigrationInterface {
  name = 'BrokenModels1795800000000';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE "inference_workers" ADD "broken" json`);
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE "inference_workers" DROP COLUMN "broken"`);
  }
}
