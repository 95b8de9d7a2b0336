import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Heartbeats of the inference processes, and the devices they draw on. */
export class InferenceWorkers1795300000000 implements MigrationInterface {
  name = 'InferenceWorkers1795300000000';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
            CREATE TABLE "inference_workers" (
                "id" character varying(24) NOT NULL,
                "devices" text array NOT NULL,
                "started_at" TIMESTAMP(3) WITH TIME ZONE NOT NULL,
                "heartbeat_at" TIMESTAMP(3) WITH TIME ZONE NOT NULL,
                CONSTRAINT "inference_workers_pkey" PRIMARY KEY ("id")
            )
        `);
    await queryRunner.query(`
            CREATE INDEX "inference_workers_heartbeat_idx" ON "inference_workers" ("heartbeat_at")
        `);
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
            DROP INDEX "public"."inference_workers_heartbeat_idx"
        `);
    await queryRunner.query(`
            DROP TABLE "inference_workers"
        `);
  }
}
