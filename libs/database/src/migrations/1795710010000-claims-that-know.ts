import type { MigrationInterface, QueryRunner } from 'typeorm';
import { insertTasks } from './1795680000000-insert-tasks';
import { replaced } from './replaced';

/**
 * What the claim of a task depends on: the models of each worker, and whether a task was drawn alone when its worker
 * died.
 */
export class ClaimsThatKnow1795710010000 implements MigrationInterface {
  name = 'ClaimsThatKnow1795710010000';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE "inference_workers" ADD "models" text array`);
    await queryRunner.query(`
      CREATE TABLE "drawable_models" (
        "name" character varying(64) NOT NULL,
        "drawable_at" TIMESTAMP(3) WITH TIME ZONE NOT NULL,
        CONSTRAINT "drawable_models_pkey" PRIMARY KEY ("name")
      )
    `);
    await queryRunner.query(`
      ALTER TABLE "image_tasks"
        ADD "drawn_alone" boolean NOT NULL DEFAULT false,
        ADD "failures" integer NOT NULL DEFAULT '0'
    `);
    await queryRunner.query(replacing(alongIndex(newOrder)));
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(replacing(alongIndex(oldOrder)));
    await queryRunner.query(`ALTER TABLE "image_tasks" DROP COLUMN "failures", DROP COLUMN "drawn_alone"`);
    await queryRunner.query(`DROP TABLE "drawable_models"`);
    await queryRunner.query(`ALTER TABLE "inference_workers" DROP COLUMN "models"`);
  }
}

const oldOrder = 'owner_id, created_at, id';
const newOrder = 'owner_id, model, created_at, id';

/** `insert_tasks` as it was, except that it goes from owner to owner along the index of this order. */
function alongIndex(order: string): string {
  return replaced(insertTasks, `ORDER BY ${oldOrder} LIMIT 1`, `ORDER BY ${order} LIMIT 1`);
}

/** The function as this migration leaves it. */
export const insertTasksByModel = alongIndex(newOrder);

/** A statement that puts a function in the place of the one of the same name. */
export const replacing = (definition: string): string =>
  replaced(definition, 'CREATE FUNCTION', 'CREATE OR REPLACE FUNCTION');
