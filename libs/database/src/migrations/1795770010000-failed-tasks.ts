import type { MigrationInterface, QueryRunner } from 'typeorm';
import { createIndexConcurrently } from './index-concurrently';

/** The failed tasks of all keys by the time of their end, for the operator. */
export class FailedTasks1795770010000 implements MigrationInterface {
  name = 'FailedTasks1795770010000';
  transaction = false as const;

  public async up(queryRunner: QueryRunner): Promise<void> {
    await createIndexConcurrently(
      queryRunner,
      'image_tasks_failed_idx',
      `"image_tasks" ("completed_at", "id") WHERE "status" = 'failed' AND NOT "sandbox"`,
    );
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP INDEX "public"."image_tasks_failed_idx"`);
  }
}
