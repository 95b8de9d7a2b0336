import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Drops the index over all owners' open tasks. Before it had statistics, the planner preferred it to the one that
 * begins with the owner, and counted one key's queue by scanning the tasks of all keys.
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
