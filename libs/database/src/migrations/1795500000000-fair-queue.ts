import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Columns and tables for a fair claim between keys, and tasks that no engine draws. */
export class FairQueue1795500000000 implements MigrationInterface {
  name = 'FairQueue1795500000000';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE "fair_shares" (
        "owner_id" character varying(24) NOT NULL,
        "virtual_time" double precision NOT NULL DEFAULT '0',
        CONSTRAINT "fair_shares_pkey" PRIMARY KEY ("owner_id")
      ) WITH (fillfactor = 50)
    `);
    await queryRunner.query(`
      ALTER TABLE "image_tasks"
        ADD "sandbox" boolean NOT NULL DEFAULT false,
        ADD "not_before" TIMESTAMP(3) WITH TIME ZONE,
        ADD "ticket" character varying(40),
        ADD "slot" integer,
        ADD "charged_seconds" double precision NOT NULL DEFAULT '0'
    `);
    await queryRunner.query(`
      CREATE INDEX "image_tasks_queued_idx" ON "image_tasks" ("owner_id", "created_at", "id")
      WHERE "status" = 'queued' AND NOT "sandbox"
    `);
    await queryRunner.query(`
      CREATE INDEX "image_tasks_ticket_idx" ON "image_tasks" ("ticket") WHERE "status" = 'processing'
    `);
    await queryRunner.query(`
      CREATE UNIQUE INDEX "image_tasks_slot_idx" ON "image_tasks" ("owner_id", "slot") WHERE "status" = 'processing'
    `);
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    for (const index of ['slot', 'ticket', 'queued'])
      await queryRunner.query(`DROP INDEX "public"."image_tasks_${index}_idx"`);
    await queryRunner.query(`
      ALTER TABLE "image_tasks"
        DROP COLUMN "charged_seconds",
        DROP COLUMN "slot",
        DROP COLUMN "ticket",
        DROP COLUMN "not_before",
        DROP COLUMN "sandbox"
    `);
    await queryRunner.query(`DROP TABLE "fair_shares"`);
  }
}
