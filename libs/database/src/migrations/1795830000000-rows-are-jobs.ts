import type { MigrationInterface, QueryRunner } from 'typeorm';

/** A task's row is its job, and requests insert rows by plain statements. */
export class RowsAreJobs1795830000000 implements MigrationInterface {
  name = 'RowsAreJobs1795830000000';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP FUNCTION insert_tasks(json)`);
    await queryRunner.query(`DROP TYPE new_task`);
    await queryRunner.query(`DROP INDEX image_tasks_ticket_idx`);
    await queryRunner.query(`ALTER TABLE image_tasks DROP COLUMN enqueued, DROP COLUMN ticket`);
    await queryRunner.query(`ALTER TABLE image_tasks RENAME COLUMN slot TO place`);
    await queryRunner.query(`ALTER INDEX image_tasks_slot_idx RENAME TO image_tasks_place_idx`);
  }

  public async down(): Promise<void> {
    throw new Error('There is no way back from here.');
  }
}
