import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Storage use and limit of each key, and uploads in progress. Writes no row: the api's sweeper counts existing files, a
 * few rows at a time.
 */
export class StorageUse1795640000000 implements MigrationInterface {
  name = 'StorageUse1795640000000';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE "api_keys" ADD "max_storage_mb" integer`);
    await queryRunner.query(`ALTER TABLE "finetunes" ADD "weights_bytes" bigint`);
    await queryRunner.query(`ALTER TABLE "image_tasks" ADD "picture_bytes" bigint NOT NULL DEFAULT '0'`);
    await queryRunner.query(`
      CREATE TABLE "storage_use" (
        "owner_id" character varying(24) NOT NULL,
        "picture_bytes" bigint NOT NULL DEFAULT '0',
        "weight_bytes" bigint NOT NULL DEFAULT '0',
        "counted_at" TIMESTAMP WITH TIME ZONE,
        CONSTRAINT "storage_use_pkey" PRIMARY KEY ("owner_id")
      ) WITH (fillfactor = 50)
    `);
    await queryRunner.query(`
      CREATE UNLOGGED TABLE "uploads" (
        "id" character varying(24) NOT NULL,
        "owner_id" character varying(24) NOT NULL,
        "bytes" bigint NOT NULL,
        "renewed_at" TIMESTAMP WITH TIME ZONE NOT NULL DEFAULT now(),
        CONSTRAINT "uploads_pkey" PRIMARY KEY ("id")
      )
    `);
    await queryRunner.query(`CREATE INDEX "uploads_owner_idx" ON "uploads" ("owner_id")`);
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP TABLE "uploads"`);
    await queryRunner.query(`DROP TABLE "storage_use"`);
    await queryRunner.query(`ALTER TABLE "image_tasks" DROP COLUMN "picture_bytes"`);
    await queryRunner.query(`ALTER TABLE "finetunes" DROP COLUMN "weights_bytes"`);
    await queryRunner.query(`ALTER TABLE "api_keys" DROP COLUMN "max_storage_mb"`);
  }
}
