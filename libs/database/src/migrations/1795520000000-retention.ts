import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Index to find tasks that are past their key's retention. */
export class Retention1795520000000 implements MigrationInterface {
  name = 'Retention1795520000000';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE INDEX "image_tasks_completed_idx" ON "image_tasks" ("owner_id", "completed_at")
      WHERE "completed_at" IS NOT NULL
    `);
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP INDEX "public"."image_tasks_completed_idx"`);
  }
}
