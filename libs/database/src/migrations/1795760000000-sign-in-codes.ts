import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Codes that sign one browser in. They are in the database because any api process may be asked, and only one may
 * accept a code.
 */
export class SignInCodes1795760000000 implements MigrationInterface {
  name = 'SignInCodes1795760000000';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE "sign_in_codes" (
        "hash" bytea NOT NULL,
        "sealed_token" bytea NOT NULL,
        "expires_at" TIMESTAMP WITH TIME ZONE NOT NULL,
        CONSTRAINT "sign_in_codes_pkey" PRIMARY KEY ("hash")
      )
    `);
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP TABLE "sign_in_codes"`);
  }
}
