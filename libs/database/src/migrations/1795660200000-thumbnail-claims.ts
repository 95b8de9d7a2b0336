import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Which process is making a thumbnail, so that it is made once. */
export class ThumbnailClaims1795660200000 implements MigrationInterface {
  name = 'ThumbnailClaims1795660200000';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE "styles" ADD "thumbnail_claimed_at" TIMESTAMP(3) WITH TIME ZONE`);
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE "styles" DROP COLUMN "thumbnail_claimed_at"`);
  }
}
