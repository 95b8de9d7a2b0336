import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The key that encrypts positions in lists: random, and the same for all processes. */
export class CursorKeys1795720000000 implements MigrationInterface {
  name = 'CursorKeys1795720000000';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE "cursor_keys" (
        "id" integer NOT NULL,
        "secret" bytea NOT NULL,
        CONSTRAINT "cursor_keys_pkey" PRIMARY KEY ("id")
      )
    `);
    // Each of the two has 122 random bits.
    await queryRunner.query(`
      INSERT INTO "cursor_keys" ("id", "secret")
      VALUES (1, decode(replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex'))
    `);
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP TABLE "cursor_keys"`);
  }
}
