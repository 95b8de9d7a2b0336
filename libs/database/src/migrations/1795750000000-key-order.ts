import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The order of keys, for their list. There are few keys, so the table is rewritten at once. */
export class KeyOrder1795750000000 implements MigrationInterface {
  name = 'KeyOrder1795750000000';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE "api_keys" ADD "seq" BIGSERIAL NOT NULL`);
    await queryRunner.query(`
      UPDATE "api_keys" SET "seq" = ordered.place
      FROM (SELECT id, row_number() OVER (ORDER BY created_at, id) AS place FROM "api_keys") AS ordered
      WHERE ordered.id = "api_keys".id
    `);
    await queryRunner.query(`CREATE INDEX "api_keys_seq_idx" ON "api_keys" ("seq")`);
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP INDEX "public"."api_keys_seq_idx"`);
    await queryRunner.query(`ALTER TABLE "api_keys" DROP COLUMN "seq"`);
  }
}
