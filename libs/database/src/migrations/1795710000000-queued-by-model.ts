import type { MigrationInterface, QueryRunner } from 'typeorm';
import { createIndexConcurrently } from './index-concurrently';

/** The tasks that wait, by owner and model: a worker reads those that it can draw, however many others there are. */
export class QueuedByModel1795710000000 implements MigrationInterface {
  name = 'QueuedByModel1795710000000';
  transaction = false as const;

  public async up(queryRunner: QueryRunner): Promise<void> {
    await createIndexConcurrently(
      queryRunner,
      'image_tasks_queued_model_idx',
      `"image_tasks" ("owner_id", "model", "created_at", "id") WHERE "status" = 'queued' AND NOT "sandbox"`,
    );
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP INDEX "public"."image_tasks_queued_model_idx"`);
  }
}
