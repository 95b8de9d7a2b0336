import type { MigrationInterface, QueryRunner } from 'typeorm';
import { replacing } from './1795710010000-claims-that-know';
import { insertTasksWithWebhooks } from './1795730000000-prompt-webhooks';
import { replaced } from './replaced';

const ofFinetune = (column: string): string => `(SELECT ${column} FROM finetunes WHERE finetunes.id = finetune_id)`;

/**
 * A task keeps the scale of its Fine-Tune's weights as it was when the task was accepted, and the hash of the weights
 * that had it. `insert_tasks` looks both up, so that tasks of older processes have them too.
 */
export class AcceptedScale1795790000000 implements MigrationInterface {
  name = 'AcceptedScale1795790000000';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(
      `ALTER TABLE "image_tasks" ADD "weights_hash" character varying(64), ADD "weights_scale" double precision`,
    );
    const columns = replaced(
      insertTasksWithWebhooks,
      'created_at, status\n',
      'created_at, status, weights_hash, weights_scale\n',
    );
    const values = [`created_at, 'queued'`, ofFinetune('weights_hash'), ofFinetune('weights_scale')].join(', ');
    const withScale = replaced(columns, `created_at, 'queued'\n`, `${values}\n`);
    await queryRunner.query(replacing(withScale));
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(replacing(insertTasksWithWebhooks));
    await queryRunner.query(`ALTER TABLE "image_tasks" DROP COLUMN "weights_scale", DROP COLUMN "weights_hash"`);
  }
}
