import type { MigrationInterface, QueryRunner } from 'typeorm';
import { insertTasksByModel, replacing } from './1795710010000-claims-that-know';
import { replaced } from './replaced';

const inserted = 'INSERT INTO finetune_prompts (id, owner_id, finetune_id, prompt, metadata)';
const selected = 'SELECT id, owner_id, finetune_id, prompt_as_sent, metadata FROM';

/** `insert_tasks` as it was, except that it stores the webhooks of Prompts. */
export const insertTasksWithWebhooks = [inserted, selected].reduce(
  (statement, part) => replaced(statement, part, part.replace('metadata', 'metadata, webhook')),
  insertTasksByModel,
);

/**
 * Prompts have webhooks: `insert_tasks` stores them too. It is the same in all other respects, and processes of the
 * older version send no webhook for a Prompt.
 */
export class PromptWebhooks1795730000000 implements MigrationInterface {
  name = 'PromptWebhooks1795730000000';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE "finetune_prompts" ADD "webhook" character varying(2048)`);
    await queryRunner.query(replacing(insertTasksWithWebhooks));
    // Checked by the next migration, without a lock that others would wait for.
    await queryRunner.query(`ALTER TABLE "webhook_deliveries" DROP CONSTRAINT "webhook_deliveries_generation_id_fkey"`);
    await queryRunner.query(`
      ALTER TABLE "webhook_deliveries" ADD CONSTRAINT "webhook_deliveries_task_id_fkey"
      FOREIGN KEY ("generation_id") REFERENCES "image_tasks" ("id") ON DELETE CASCADE ON UPDATE NO ACTION NOT VALID
    `);
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      DELETE FROM "webhook_deliveries" WHERE NOT EXISTS (SELECT FROM "generations" WHERE "id" = "generation_id")
    `);
    await queryRunner.query(`ALTER TABLE "webhook_deliveries" DROP CONSTRAINT "webhook_deliveries_task_id_fkey"`);
    await queryRunner.query(`
      ALTER TABLE "webhook_deliveries" ADD CONSTRAINT "webhook_deliveries_generation_id_fkey"
      FOREIGN KEY ("generation_id") REFERENCES "generations" ("id") ON DELETE CASCADE ON UPDATE NO ACTION
    `);
    await queryRunner.query(replacing(insertTasksByModel));
    await queryRunner.query(`ALTER TABLE "finetune_prompts" DROP COLUMN "webhook"`);
  }
}
