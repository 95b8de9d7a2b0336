import type { MigrationInterface, QueryRunner } from 'typeorm';

/** How often a task's worker died. */
export class Deaths1795530000000 implements MigrationInterface {
  name = 'Deaths1795530000000';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE "image_tasks" ADD "deaths" integer NOT NULL DEFAULT '0'`);
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE "image_tasks" DROP COLUMN "deaths"`);
  }
}
