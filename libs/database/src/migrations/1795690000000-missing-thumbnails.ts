import type { MigrationInterface, QueryRunner } from 'typeorm';
import { createIndexConcurrently } from './index-concurrently';

/** The Styles that wait for a thumbnail, by owner and Prompt, so that owners can take turns. */
export class MissingThumbnails1795690000000 implements MigrationInterface {
  name = 'MissingThumbnails1795690000000';
  transaction = false as const;

  public async up(queryRunner: QueryRunner): Promise<void> {
    await createIndexConcurrently(
      queryRunner,
      'styles_missing_thumbnail_idx',
      `"styles" ("owner_id", "source_prompt_id", "seq") WHERE "source_prompt_id" IS NOT NULL AND "thumbnail_key" IS NULL`,
    );
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP INDEX "public"."styles_missing_thumbnail_idx"`);
  }
}
