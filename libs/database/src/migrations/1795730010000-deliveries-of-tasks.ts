import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Checks that every delivery has its task, while others read and write. */
export class DeliveriesOfTasks1795730010000 implements MigrationInterface {
  name = 'DeliveriesOfTasks1795730010000';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE "webhook_deliveries" VALIDATE CONSTRAINT "webhook_deliveries_task_id_fkey"`);
  }

  public async down(): Promise<void> {
    // A constraint that was checked stays so.
  }
}
