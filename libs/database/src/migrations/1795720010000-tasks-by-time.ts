import type { MigrationInterface, QueryRunner } from 'typeorm';
import { createIndexConcurrently } from './index-concurrently';

/** The tasks of an owner by the time of their creation, which lists can be limited to. */
export class TasksByTime1795720010000 implements MigrationInterface {
  name = 'TasksByTime1795720010000';
  transaction = false as const;

  public async up(queryRunner: QueryRunner): Promise<void> {
    await createIndexConcurrently(queryRunner, 'image_tasks_created_idx', `"image_tasks" ("owner_id", "created_at")`);
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP INDEX "public"."image_tasks_created_idx"`);
  }
}
