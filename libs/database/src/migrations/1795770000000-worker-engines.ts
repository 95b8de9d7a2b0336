import type { MigrationInterface, QueryRunner } from 'typeorm';

/** What the engines of a worker are at, for the operator. */
export class WorkerEngines1795770000000 implements MigrationInterface {
  name = 'WorkerEngines1795770000000';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE "inference_workers" ADD "engines" json`);
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE "inference_workers" DROP COLUMN "engines"`);
  }
}
