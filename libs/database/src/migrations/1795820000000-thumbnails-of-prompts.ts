import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The worker makes a Prompt's thumbnail with its first picture, for it and all Styles made from it. */
export class ThumbnailsOfPrompts1795820000000 implements MigrationInterface {
  name = 'ThumbnailsOfPrompts1795820000000';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE "finetune_prompts" ADD "thumbnail_key" character varying(256)`);
    await queryRunner.query(`DROP INDEX "public"."styles_missing_thumbnail_idx"`);
    await queryRunner.query(
      `CREATE INDEX "styles_source_idx" ON "styles" ("source_prompt_id", "seq") WHERE "source_prompt_id" IS NOT NULL`,
    );
    await queryRunner.query(`ALTER TABLE "styles" DROP COLUMN "thumbnail_claimed_at"`);
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE "styles" ADD "thumbnail_claimed_at" TIMESTAMP(3) WITH TIME ZONE`);
    await queryRunner.query(`DROP INDEX "public"."styles_source_idx"`);
    await queryRunner.query(
      `CREATE INDEX "styles_missing_thumbnail_idx" ON "styles" ("owner_id", "source_prompt_id", "seq")
       WHERE "source_prompt_id" IS NOT NULL AND "thumbnail_key" IS NULL`,
    );
    await queryRunner.query(`ALTER TABLE "finetune_prompts" DROP COLUMN "thumbnail_key"`);
  }
}
