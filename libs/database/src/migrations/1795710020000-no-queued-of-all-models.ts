import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Drops the index of what waits that does not know the models; the one that does has taken its place. */
export class NoQueuedOfAllModels1795710020000 implements MigrationInterface {
  name = 'NoQueuedOfAllModels1795710020000';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP INDEX "public"."image_tasks_queued_idx"`);
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE INDEX "image_tasks_queued_idx" ON "image_tasks" ("owner_id", "created_at", "id")
      WHERE "status" = 'queued' AND NOT "sandbox"
    `);
  }
}
