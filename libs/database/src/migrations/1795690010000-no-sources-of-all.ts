import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Replaced by the index that begins with the owner; the planner must not scan the Styles of all owners for those of
 * one.
 */
export class NoSourcesOfAll1795690010000 implements MigrationInterface {
  name = 'NoSourcesOfAll1795690010000';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP INDEX "public"."styles_source_prompt_idx"`);
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(
      `CREATE INDEX "styles_source_prompt_idx" ON "styles" ("source_prompt_id")
       WHERE "source_prompt_id" IS NOT NULL AND "thumbnail_key" IS NULL`,
    );
  }
}
