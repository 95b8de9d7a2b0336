import type { MigrationInterface, QueryRunner } from 'typeorm';

const columns = {
  previous_secret_hash: 'bytea',
  previous_secret_expires_at: 'TIMESTAMP WITH TIME ZONE',
  previous_webhook_secret: 'character varying(80)',
  previous_webhook_secret_expires_at: 'TIMESTAMP WITH TIME ZONE',
  sandbox: 'boolean NOT NULL DEFAULT false',
  rate_limit_per_minute: 'integer',
  max_queued: 'integer',
  max_concurrent: 'integer',
  retention_days: 'integer',
};

/** Rotation, limits, retention and sandbox of keys. */
export class KeyLimits1795510000000 implements MigrationInterface {
  name = 'KeyLimits1795510000000';

  public async up(queryRunner: QueryRunner): Promise<void> {
    for (const [name, type] of Object.entries(columns))
      await queryRunner.query(`ALTER TABLE "api_keys" ADD "${name}" ${type}`);
    // Unlogged: every request writes it, and its content is worth nothing after a crash.
    await queryRunner.query(`
      CREATE UNLOGGED TABLE "rate_buckets" (
        "owner_id" character varying(24) NOT NULL,
        "tokens" double precision NOT NULL,
        "granted" boolean NOT NULL,
        "updated_at" TIMESTAMP WITH TIME ZONE NOT NULL,
        CONSTRAINT "rate_buckets_pkey" PRIMARY KEY ("owner_id")
      ) WITH (fillfactor = 50)
    `);
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP TABLE "rate_buckets"`);
    for (const name of Object.keys(columns)) await queryRunner.query(`ALTER TABLE "api_keys" DROP COLUMN "${name}"`);
  }
}
