import type { QueryRunner } from 'typeorm';
import { ForwardMigration } from './forward-migration';
import { createIndexConcurrently } from './index-concurrently';

/** The tasks of an owner by time, and those of one moment by id: the list of all drawings walks it. */
export class TasksCreatedIndex1796300000000 extends ForwardMigration {
  readonly name = 'TasksCreatedIndex1796300000000';
  readonly transaction = false as const;

  async up(queryRunner: QueryRunner): Promise<void> {
    await createIndexConcurrently(queryRunner, 'tasks_created_id_idx', 'tasks (owner_id, created_at, id)');
  }
}

/** It takes the place, and the name, of the index without ids. */
export class TasksCreatedIndexRenamed1796310000000 extends ForwardMigration {
  readonly name = 'TasksCreatedIndexRenamed1796310000000';

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      DROP INDEX tasks_created_idx;
      ALTER INDEX tasks_created_id_idx RENAME TO tasks_created_idx;`);
  }
}
