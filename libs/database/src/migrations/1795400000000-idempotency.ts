import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Responses stored under an Idempotency-Key. */
export class Idempotency1795400000000 implements MigrationInterface {
  name = 'Idempotency1795400000000';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE "idempotent_replies" (
        "owner_id" character varying(24) NOT NULL,
        "key" character varying(255) NOT NULL,
        "fingerprint" character varying(64) NOT NULL,
        "status" integer NOT NULL,
        "body" text NOT NULL,
        "created_at" TIMESTAMP WITH TIME ZONE NOT NULL DEFAULT now(),
        CONSTRAINT "idempotent_replies_pkey" PRIMARY KEY ("owner_id", "key")
      )
    `);
    await queryRunner.query(`CREATE INDEX "idempotent_replies_created_idx" ON "idempotent_replies" ("created_at")`);
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP TABLE "idempotent_replies"`);
  }
}
