import type { MigrationInterface, QueryRunner } from 'typeorm';

/** All tables of the first version. */
export class Initial1795200000000 implements MigrationInterface {
  name = 'Initial1795200000000';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
            CREATE TABLE "api_keys" (
                "id" character varying(24) NOT NULL,
                "name" character varying(200) NOT NULL,
                "prefix" character varying(16) NOT NULL,
                "secret_hash" bytea NOT NULL,
                "webhook_secret" character varying(80) NOT NULL,
                "scopes" text array NOT NULL DEFAULT '{read,write}',
                "created_at" TIMESTAMP WITH TIME ZONE NOT NULL DEFAULT now(),
                "last_used_at" TIMESTAMP WITH TIME ZONE,
                "revoked_at" TIMESTAMP WITH TIME ZONE,
                CONSTRAINT "api_keys_prefix_key" UNIQUE ("prefix"),
                CONSTRAINT "api_keys_pkey" PRIMARY KEY ("id")
            )
        `);
    await queryRunner.query(`
            CREATE TABLE "styles" (
                "id" character varying(24) NOT NULL,
                "owner_id" character varying(24),
                "collection_id" character varying(24) NOT NULL,
                "seq" BIGSERIAL NOT NULL,
                "name" character varying(200) NOT NULL,
                "template" text NOT NULL,
                "negative_prompt" text,
                "cfg" double precision NOT NULL,
                "steps" integer NOT NULL,
                "source_prompt_id" character varying(24),
                "thumbnail_token" character varying(24),
                "thumbnail_key" character varying(256),
                "created_at" TIMESTAMP(3) WITH TIME ZONE NOT NULL,
                CONSTRAINT "styles_thumbnail_token_key" UNIQUE ("thumbnail_token"),
                CONSTRAINT "styles_pkey" PRIMARY KEY ("id")
            )
        `);
    await queryRunner.query(`
            CREATE INDEX "styles_source_prompt_idx" ON "styles" ("source_prompt_id")
            WHERE "source_prompt_id" IS NOT NULL
                AND "thumbnail_key" IS NULL
        `);
    await queryRunner.query(`
            CREATE INDEX "styles_collection_seq_idx" ON "styles" ("collection_id", "seq")
        `);
    await queryRunner.query(`
            CREATE TABLE "collections" (
                "id" character varying(24) NOT NULL,
                "owner_id" character varying(24),
                "seq" BIGSERIAL NOT NULL,
                "name" character varying(200) NOT NULL,
                "created_at" TIMESTAMP(3) WITH TIME ZONE NOT NULL,
                CONSTRAINT "collections_pkey" PRIMARY KEY ("id")
            )
        `);
    await queryRunner.query(`
            CREATE INDEX "collections_owner_seq_idx" ON "collections" ("owner_id", "seq")
        `);
    await queryRunner.query(`
            CREATE TABLE "finetunes" (
                "id" character varying(24) NOT NULL,
                "owner_id" character varying(24) NOT NULL,
                "seq" BIGSERIAL NOT NULL,
                "name" character varying(200) NOT NULL,
                "title" character varying(200),
                "token" character varying(64) NOT NULL,
                "model" character varying(64) NOT NULL,
                "status" character varying(16) NOT NULL,
                "metadata" json,
                "error_message" text,
                "weights_kind" character varying(24),
                "weights_hash" character varying(64),
                "weights_key" character varying(256),
                "weights_scale" double precision NOT NULL DEFAULT '1',
                "created_at" TIMESTAMP(3) WITH TIME ZONE NOT NULL,
                CONSTRAINT "finetunes_pkey" PRIMARY KEY ("id")
            )
        `);
    await queryRunner.query(`
            CREATE INDEX "finetunes_owner_seq_idx" ON "finetunes" ("owner_id", "seq")
        `);
    await queryRunner.query(`
            CREATE TABLE "images" (
                "id" character varying(24) NOT NULL,
                "task_id" character varying(24) NOT NULL,
                "index" integer NOT NULL,
                "token" character varying(24) NOT NULL,
                "storage_key" character varying(256) NOT NULL,
                "content_type" character varying(32) NOT NULL,
                "width" integer NOT NULL,
                "height" integer NOT NULL,
                "bytes" integer NOT NULL,
                CONSTRAINT "images_token_key" UNIQUE ("token"),
                CONSTRAINT "images_pkey" PRIMARY KEY ("id")
            )
        `);
    await queryRunner.query(`
            CREATE UNIQUE INDEX "images_task_idx" ON "images" ("task_id", "index")
        `);
    await queryRunner.query(`
            CREATE TABLE "image_tasks" (
                "id" character varying(24) NOT NULL,
                "kind" character varying(16) NOT NULL,
                "owner_id" character varying(24) NOT NULL,
                "finetune_id" character varying(24),
                "prompt" text NOT NULL,
                "negative_prompt" text,
                "cfg" double precision NOT NULL,
                "steps" integer NOT NULL,
                "seed" bigint NOT NULL,
                "scheduler" character varying(32),
                "model" character varying(64) NOT NULL,
                "aspect_ratio" character varying(16) NOT NULL,
                "high_resolution" boolean NOT NULL,
                "output_format" character varying(8) NOT NULL DEFAULT 'png',
                "prompt_weighting" boolean NOT NULL DEFAULT false,
                "num_images" integer NOT NULL,
                "status" character varying(16) NOT NULL,
                "attempt" integer NOT NULL DEFAULT '0',
                "enqueued" integer NOT NULL DEFAULT '1',
                "heartbeat_at" TIMESTAMP WITH TIME ZONE,
                "served_by" character varying(128),
                "upscaler" character varying(128),
                "prompt_chunks" integer,
                "error" text,
                "compute_seconds" double precision,
                "created_at" TIMESTAMP(3) WITH TIME ZONE NOT NULL,
                "started_at" TIMESTAMP(3) WITH TIME ZONE,
                "completed_at" TIMESTAMP(3) WITH TIME ZONE,
                CONSTRAINT "image_tasks_kind_check" CHECK ("kind" IN ('generation', 'prompt')),
                CONSTRAINT "image_tasks_status_check" CHECK (
                    "status" IN (
                        'queued',
                        'processing',
                        'succeeded',
                        'failed',
                        'canceled'
                    )
                ),
                CONSTRAINT "image_tasks_pkey" PRIMARY KEY ("id")
            )
        `);
    await queryRunner.query(`
            CREATE INDEX "image_tasks_owner_idx" ON "image_tasks" ("owner_id", "status")
        `);
    await queryRunner.query(`
            CREATE INDEX "image_tasks_open_idx" ON "image_tasks" ("status", "created_at")
            WHERE "status" IN ('queued', 'processing')
        `);
    await queryRunner.query(`
            CREATE TABLE "finetune_prompts" (
                "id" character varying(24) NOT NULL,
                "owner_id" character varying(24) NOT NULL,
                "finetune_id" character varying(24) NOT NULL,
                "seq" BIGSERIAL NOT NULL,
                "prompt" text NOT NULL,
                "metadata" json,
                CONSTRAINT "finetune_prompts_pkey" PRIMARY KEY ("id")
            )
        `);
    await queryRunner.query(`
            CREATE INDEX "finetune_prompts_finetune_seq_idx" ON "finetune_prompts" ("finetune_id", "seq")
        `);
    await queryRunner.query(`
            CREATE TABLE "generations" (
                "id" character varying(24) NOT NULL,
                "owner_id" character varying(24) NOT NULL,
                "seq" BIGSERIAL NOT NULL,
                "webhook" character varying(2048),
                "metadata" json,
                CONSTRAINT "generations_pkey" PRIMARY KEY ("id")
            )
        `);
    await queryRunner.query(`
            CREATE INDEX "generations_owner_seq_idx" ON "generations" ("owner_id", "seq")
        `);
    await queryRunner.query(`
            CREATE TABLE "daily_usage" (
                "owner_id" character varying(24) NOT NULL,
                "day" date NOT NULL,
                "model" character varying(64) NOT NULL,
                "finetune_id" character varying(24) NOT NULL,
                "images" bigint NOT NULL,
                "steps" bigint NOT NULL,
                "compute_seconds" double precision NOT NULL,
                CONSTRAINT "daily_usage_pkey" PRIMARY KEY ("owner_id", "day", "model", "finetune_id")
            )
        `);
    await queryRunner.query(`
            CREATE TABLE "webhook_deliveries" (
                "id" character varying(24) NOT NULL,
                "owner_id" character varying(24) NOT NULL,
                "generation_id" character varying(24) NOT NULL,
                "url" character varying(2048) NOT NULL,
                "status" character varying(16) NOT NULL,
                "attempts" integer NOT NULL DEFAULT '0',
                "enqueued" integer NOT NULL DEFAULT '1',
                "next_attempt_at" TIMESTAMP(3) WITH TIME ZONE,
                "created_at" TIMESTAMP(3) WITH TIME ZONE NOT NULL,
                "completed_at" TIMESTAMP(3) WITH TIME ZONE,
                CONSTRAINT "webhook_deliveries_status_check" CHECK ("status" IN ('pending', 'delivered', 'failed')),
                CONSTRAINT "webhook_deliveries_pkey" PRIMARY KEY ("id")
            )
        `);
    await queryRunner.query(`
            CREATE INDEX "webhook_deliveries_due_idx" ON "webhook_deliveries" ("next_attempt_at")
            WHERE "status" = 'pending'
        `);
    await queryRunner.query(`
            CREATE INDEX "webhook_deliveries_generation_idx" ON "webhook_deliveries" ("generation_id", "created_at")
        `);
    await queryRunner.query(`
            CREATE TABLE "webhook_attempts" (
                "id" character varying(24) NOT NULL,
                "delivery_id" character varying(24) NOT NULL,
                "started_at" TIMESTAMP(3) WITH TIME ZONE NOT NULL,
                "duration_ms" integer NOT NULL,
                "status_code" integer,
                "error" text,
                CONSTRAINT "webhook_attempts_pkey" PRIMARY KEY ("id")
            )
        `);
    await queryRunner.query(`
            CREATE INDEX "webhook_attempts_delivery_idx" ON "webhook_attempts" ("delivery_id", "started_at")
        `);
    await queryRunner.query(`
            ALTER TABLE "styles"
            ADD CONSTRAINT "styles_collection_id_fkey" FOREIGN KEY ("collection_id") REFERENCES "collections"("id") ON DELETE CASCADE ON UPDATE NO ACTION
        `);
    await queryRunner.query(`
            ALTER TABLE "images"
            ADD CONSTRAINT "images_task_id_fkey" FOREIGN KEY ("task_id") REFERENCES "image_tasks"("id") ON DELETE CASCADE ON UPDATE NO ACTION
        `);
    await queryRunner.query(`
            ALTER TABLE "finetune_prompts"
            ADD CONSTRAINT "finetune_prompts_id_fkey" FOREIGN KEY ("id") REFERENCES "image_tasks"("id") ON DELETE CASCADE ON UPDATE NO ACTION
        `);
    await queryRunner.query(`
            ALTER TABLE "finetune_prompts"
            ADD CONSTRAINT "finetune_prompts_finetune_id_fkey" FOREIGN KEY ("finetune_id") REFERENCES "finetunes"("id") ON DELETE CASCADE ON UPDATE NO ACTION
        `);
    await queryRunner.query(`
            ALTER TABLE "generations"
            ADD CONSTRAINT "generations_id_fkey" FOREIGN KEY ("id") REFERENCES "image_tasks"("id") ON DELETE CASCADE ON UPDATE NO ACTION
        `);
    await queryRunner.query(`
            ALTER TABLE "webhook_deliveries"
            ADD CONSTRAINT "webhook_deliveries_generation_id_fkey" FOREIGN KEY ("generation_id") REFERENCES "generations"("id") ON DELETE CASCADE ON UPDATE NO ACTION
        `);
    await queryRunner.query(`
            ALTER TABLE "webhook_attempts"
            ADD CONSTRAINT "webhook_attempts_delivery_id_fkey" FOREIGN KEY ("delivery_id") REFERENCES "webhook_deliveries"("id") ON DELETE CASCADE ON UPDATE NO ACTION
        `);
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
            ALTER TABLE "webhook_attempts" DROP CONSTRAINT "webhook_attempts_delivery_id_fkey"
        `);
    await queryRunner.query(`
            ALTER TABLE "webhook_deliveries" DROP CONSTRAINT "webhook_deliveries_generation_id_fkey"
        `);
    await queryRunner.query(`
            ALTER TABLE "generations" DROP CONSTRAINT "generations_id_fkey"
        `);
    await queryRunner.query(`
            ALTER TABLE "finetune_prompts" DROP CONSTRAINT "finetune_prompts_finetune_id_fkey"
        `);
    await queryRunner.query(`
            ALTER TABLE "finetune_prompts" DROP CONSTRAINT "finetune_prompts_id_fkey"
        `);
    await queryRunner.query(`
            ALTER TABLE "images" DROP CONSTRAINT "images_task_id_fkey"
        `);
    await queryRunner.query(`
            ALTER TABLE "styles" DROP CONSTRAINT "styles_collection_id_fkey"
        `);
    await queryRunner.query(`
            DROP INDEX "public"."webhook_attempts_delivery_idx"
        `);
    await queryRunner.query(`
            DROP TABLE "webhook_attempts"
        `);
    await queryRunner.query(`
            DROP INDEX "public"."webhook_deliveries_generation_idx"
        `);
    await queryRunner.query(`
            DROP INDEX "public"."webhook_deliveries_due_idx"
        `);
    await queryRunner.query(`
            DROP TABLE "webhook_deliveries"
        `);
    await queryRunner.query(`
            DROP TABLE "daily_usage"
        `);
    await queryRunner.query(`
            DROP INDEX "public"."generations_owner_seq_idx"
        `);
    await queryRunner.query(`
            DROP TABLE "generations"
        `);
    await queryRunner.query(`
            DROP INDEX "public"."finetune_prompts_finetune_seq_idx"
        `);
    await queryRunner.query(`
            DROP TABLE "finetune_prompts"
        `);
    await queryRunner.query(`
            DROP INDEX "public"."image_tasks_open_idx"
        `);
    await queryRunner.query(`
            DROP INDEX "public"."image_tasks_owner_idx"
        `);
    await queryRunner.query(`
            DROP TABLE "image_tasks"
        `);
    await queryRunner.query(`
            DROP INDEX "public"."images_task_idx"
        `);
    await queryRunner.query(`
            DROP TABLE "images"
        `);
    await queryRunner.query(`
            DROP INDEX "public"."finetunes_owner_seq_idx"
        `);
    await queryRunner.query(`
            DROP TABLE "finetunes"
        `);
    await queryRunner.query(`
            DROP INDEX "public"."collections_owner_seq_idx"
        `);
    await queryRunner.query(`
            DROP TABLE "collections"
        `);
    await queryRunner.query(`
            DROP INDEX "public"."styles_collection_seq_idx"
        `);
    await queryRunner.query(`
            DROP INDEX "public"."styles_source_prompt_idx"
        `);
    await queryRunner.query(`
            DROP TABLE "styles"
        `);
    await queryRunner.query(`
            DROP TABLE "api_keys"
        `);
  }
}
