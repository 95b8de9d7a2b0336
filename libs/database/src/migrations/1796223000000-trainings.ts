import type { QueryRunner } from 'typeorm';
import { ForwardMigration } from './forward-migration';
import { createIndexConcurrently } from './index-concurrently';

/** Trainings, and the queue in which a task waits. */
export class Trainings1796223000000 extends ForwardMigration {
  readonly name = 'Trainings1796223000000';

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE tasks ADD COLUMN queue varchar(16) NOT NULL DEFAULT 'drawing';
      CREATE TABLE trainings (
        id varchar(24) NOT NULL,
        images_url text array NOT NULL,
        captions text array,
        steps integer NOT NULL,
        seed bigint NOT NULL,
        webhook varchar(2048),
        prompt_ids varchar(24) array NOT NULL DEFAULT '{}',
        step integer NOT NULL DEFAULT 0,
        compute_seconds double precision NOT NULL DEFAULT 0,
        note text,
        CONSTRAINT trainings_pkey PRIMARY KEY (id),
        CONSTRAINT trainings_id_fkey FOREIGN KEY (id) REFERENCES tasks(id) ON DELETE CASCADE
      );`);
  }
}

/** The tasks of each queue by owner and model. */
export class TasksQueueIndex1796223100000 extends ForwardMigration {
  readonly name = 'TasksQueueIndex1796223100000';
  transaction = false as const;

  async up(queryRunner: QueryRunner): Promise<void> {
    await createIndexConcurrently(
      queryRunner,
      'tasks_queue_idx',
      `tasks (queue, owner_id, model, created_at, id) WHERE status = 'queued' AND NOT sandbox`,
    );
  }
}

/** It takes the place, and the name, of the index without queues. */
export class TasksQueueIndexRenamed1796223200000 extends ForwardMigration {
  readonly name = 'TasksQueueIndexRenamed1796223200000';

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      DROP INDEX tasks_queued_model_idx;
      ALTER INDEX tasks_queue_idx RENAME TO tasks_queued_model_idx;`);
  }
}
