import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * An index of everybody's open tasks looked to the planner, before it had statistics, as good as one that begins with the owner:
 * what a key has queued was counted by going through what all have.
 */
export class NoOpenTasksOfAll1795670010000 implements MigrationInterface {
  name = 'NoOpenTasksOfAll1795670010000';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP INDEX "public"."image_tasks_open_idx"`);
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(
      `CREATE INDEX "image_tasks_open_idx" ON "image_tasks" ("status", "created_at") WHERE "status" IN ('queued', 'processing')`,
    );
  }
}
