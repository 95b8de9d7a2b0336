import type { MigrationInterface, QueryRunner } from 'typeorm';
import { createIndexConcurrently } from './index-concurrently';

/** Index for the sweeper of sandbox tasks. */
export class OpenSandboxTasks1795670000000 implements MigrationInterface {
  name = 'OpenSandboxTasks1795670000000';
  transaction = false as const;

  public async up(queryRunner: QueryRunner): Promise<void> {
    await createIndexConcurrently(
      queryRunner,
      'image_tasks_sandbox_idx',
      `"image_tasks" ("created_at") WHERE "status" IN ('queued', 'processing') AND "sandbox"`,
    );
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP INDEX "public"."image_tasks_sandbox_idx"`);
  }
}
