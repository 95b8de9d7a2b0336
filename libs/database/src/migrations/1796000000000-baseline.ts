import type { QueryRunner } from 'typeorm';
import { ForwardMigration } from './forward-migration';

/** All tables as the entities describe them. Half of a page stays free for rows that are written again and again. */
const baselineSql = `
  CREATE TABLE api_keys (
    id varchar(24) NOT NULL,
    seq bigserial NOT NULL,
    name varchar(200) NOT NULL,
    prefix varchar(16) NOT NULL,
    secret_hash bytea NOT NULL,
    previous_secret_hash bytea,
    previous_secret_expires_at timestamptz,
    webhook_secret varchar(80) NOT NULL,
    previous_webhook_secret varchar(80),
    previous_webhook_secret_expires_at timestamptz,
    scopes text array NOT NULL DEFAULT '{read,write}',
    sandbox boolean NOT NULL DEFAULT false,
    rate_limit_per_minute integer,
    max_queued integer,
    max_concurrent integer,
    max_storage_mb integer,
    retention_days integer,
    created_at timestamptz NOT NULL DEFAULT now(),
    last_used_at timestamptz,
    revoked_at timestamptz,
    CONSTRAINT api_keys_prefix_key UNIQUE (prefix),
    CONSTRAINT api_keys_pkey PRIMARY KEY (id)
  );
  CREATE INDEX api_keys_seq_idx ON api_keys (seq);
  CREATE UNLOGGED TABLE rate_buckets (
    owner_id varchar(24) NOT NULL,
    tokens double precision NOT NULL,
    granted boolean NOT NULL,
    taken integer NOT NULL DEFAULT 0,
    updated_at timestamptz NOT NULL,
    CONSTRAINT rate_buckets_pkey PRIMARY KEY (owner_id)
  ) WITH (fillfactor = 50);
  CREATE TABLE storage_use (
    owner_id varchar(24) NOT NULL,
    picture_bytes bigint NOT NULL DEFAULT 0,
    weight_bytes bigint NOT NULL DEFAULT 0,
    counted_at timestamptz,
    CONSTRAINT storage_use_pkey PRIMARY KEY (owner_id)
  ) WITH (fillfactor = 50);
  CREATE UNLOGGED TABLE uploads (
    id varchar(24) NOT NULL,
    owner_id varchar(24) NOT NULL,
    bytes bigint NOT NULL,
    renewed_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT uploads_pkey PRIMARY KEY (id)
  );
  CREATE INDEX uploads_owner_idx ON uploads (owner_id);
  CREATE TABLE daily_usage (
    owner_id varchar(24) NOT NULL,
    day date NOT NULL,
    model varchar(64) NOT NULL,
    finetune_id varchar(24) NOT NULL,
    images bigint NOT NULL,
    steps bigint NOT NULL,
    compute_seconds double precision NOT NULL,
    CONSTRAINT daily_usage_pkey PRIMARY KEY (owner_id, day, model, finetune_id)
  );
  CREATE TABLE styles (
    id varchar(24) NOT NULL,
    owner_id varchar(24),
    collection_id varchar(24) NOT NULL,
    seq bigserial NOT NULL,
    name varchar(200) NOT NULL,
    template text NOT NULL,
    negative_prompt text,
    cfg double precision,
    steps integer,
    source_prompt_id varchar(24),
    thumbnail_token varchar(24),
    thumbnail_key varchar(256),
    created_at timestamptz(3) NOT NULL,
    CONSTRAINT styles_thumbnail_token_key UNIQUE (thumbnail_token),
    CONSTRAINT styles_pkey PRIMARY KEY (id)
  );
  CREATE INDEX styles_source_idx ON styles (source_prompt_id, seq) WHERE source_prompt_id IS NOT NULL;
  CREATE INDEX styles_collection_seq_idx ON styles (collection_id, seq);
  CREATE TABLE collections (
    id varchar(24) NOT NULL,
    owner_id varchar(24),
    seq bigserial NOT NULL,
    name varchar(200) NOT NULL,
    created_at timestamptz(3) NOT NULL,
    CONSTRAINT collections_pkey PRIMARY KEY (id)
  );
  CREATE INDEX collections_owner_seq_idx ON collections (owner_id, seq);
  CREATE TABLE cursor_keys (
    id integer NOT NULL,
    secret bytea NOT NULL,
    CONSTRAINT cursor_keys_pkey PRIMARY KEY (id)
  );
  CREATE TABLE readiness_probes (
    id integer NOT NULL,
    probed_at timestamptz(3) NOT NULL,
    CONSTRAINT readiness_probes_pkey PRIMARY KEY (id)
  );
  CREATE TABLE idempotent_replies (
    owner_id varchar(24) NOT NULL,
    key varchar(255) NOT NULL,
    fingerprint varchar(64) NOT NULL,
    status integer NOT NULL,
    body text NOT NULL,
    record_ids varchar(24) array NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT idempotent_replies_pkey PRIMARY KEY (owner_id, key)
  );
  CREATE INDEX idempotent_replies_records_idx ON idempotent_replies USING gin (record_ids);
  CREATE INDEX idempotent_replies_created_idx ON idempotent_replies (created_at);
  CREATE TABLE fair_shares (
    owner_id varchar(24) NOT NULL,
    virtual_time double precision NOT NULL DEFAULT 0,
    CONSTRAINT fair_shares_pkey PRIMARY KEY (owner_id)
  ) WITH (fillfactor = 50);
  CREATE TABLE finetunes (
    id varchar(24) NOT NULL,
    owner_id varchar(24) NOT NULL,
    seq bigserial NOT NULL,
    name varchar(200) NOT NULL,
    title varchar(200),
    token varchar(64) NOT NULL,
    model varchar(64) NOT NULL,
    status varchar(16) NOT NULL,
    metadata json,
    error_message text,
    weights_kind varchar(24),
    weights_hash varchar(64),
    weights_key varchar(256),
    weights_vectors integer,
    weights_bytes bigint,
    weights_scale double precision NOT NULL DEFAULT 1,
    weights_base varchar(128),
    weights_note text,
    created_at timestamptz(3) NOT NULL,
    CONSTRAINT finetunes_pkey PRIMARY KEY (id)
  );
  CREATE INDEX finetunes_owner_seq_idx ON finetunes (owner_id, seq);
  CREATE TABLE images (
    id varchar(24) NOT NULL,
    task_id varchar(24) NOT NULL,
    index integer NOT NULL,
    token varchar(24) NOT NULL,
    storage_key varchar(256) NOT NULL,
    content_type varchar(32) NOT NULL,
    width integer NOT NULL,
    height integer NOT NULL,
    bytes integer NOT NULL,
    CONSTRAINT images_token_key UNIQUE (token),
    CONSTRAINT images_pkey PRIMARY KEY (id)
  );
  CREATE UNIQUE INDEX images_task_idx ON images (task_id, index);
  CREATE TABLE tasks (
    id varchar(24) NOT NULL,
    kind varchar(16) NOT NULL,
    owner_id varchar(24) NOT NULL,
    model varchar(64) NOT NULL,
    cost double precision NOT NULL,
    sandbox boolean NOT NULL DEFAULT false,
    status varchar(16) NOT NULL,
    attempt integer NOT NULL DEFAULT 0,
    failures integer NOT NULL DEFAULT 0,
    deaths integer NOT NULL DEFAULT 0,
    drawn_alone boolean NOT NULL DEFAULT false,
    not_before timestamptz(3),
    place integer,
    charged_seconds double precision NOT NULL DEFAULT 0,
    heartbeat_at timestamptz,
    error text,
    compute_seconds double precision,
    picture_bytes bigint NOT NULL DEFAULT 0,
    created_at timestamptz(3) NOT NULL,
    started_at timestamptz(3),
    completed_at timestamptz(3),
    CONSTRAINT tasks_status_check CHECK (status IN ('queued', 'processing', 'succeeded', 'failed', 'canceled')),
    CONSTRAINT tasks_pkey PRIMARY KEY (id)
  );
  CREATE UNIQUE INDEX tasks_place_idx ON tasks (owner_id, place) WHERE status = 'processing';
  CREATE INDEX tasks_failed_idx ON tasks (completed_at, id) WHERE status = 'failed' AND NOT sandbox;
  CREATE INDEX tasks_queued_model_idx ON tasks (owner_id, model, created_at, id) WHERE status = 'queued' AND NOT sandbox;
  CREATE INDEX tasks_completed_idx ON tasks (owner_id, completed_at) WHERE completed_at IS NOT NULL;
  CREATE INDEX tasks_created_idx ON tasks (owner_id, created_at);
  CREATE INDEX tasks_owner_idx ON tasks (owner_id, status);
  CREATE INDEX tasks_sandbox_idx ON tasks (created_at) WHERE status IN ('queued', 'processing') AND sandbox;
  CREATE TABLE drawings (
    id varchar(24) NOT NULL,
    finetune_id varchar(24),
    prompt text NOT NULL,
    negative_prompt text,
    cfg double precision NOT NULL,
    steps integer NOT NULL,
    seed bigint NOT NULL,
    scheduler varchar(32),
    aspect_ratio varchar(16) NOT NULL,
    width integer NOT NULL DEFAULT 512,
    height integer NOT NULL DEFAULT 512,
    high_resolution boolean NOT NULL,
    output_format varchar(8) NOT NULL DEFAULT 'png',
    prompt_weighting boolean NOT NULL DEFAULT false,
    num_images integer NOT NULL,
    weights_hash varchar(64),
    weights_scale double precision,
    served_by varchar(128),
    upscaler varchar(128),
    prompt_chunks integer,
    CONSTRAINT drawings_pkey PRIMARY KEY (id)
  );
  CREATE TABLE finetune_prompts (
    id varchar(24) NOT NULL,
    owner_id varchar(24) NOT NULL,
    finetune_id varchar(24) NOT NULL,
    seq bigserial NOT NULL,
    prompt text NOT NULL,
    webhook varchar(2048),
    metadata json,
    thumbnail_key varchar(256),
    CONSTRAINT finetune_prompts_pkey PRIMARY KEY (id)
  );
  CREATE INDEX finetune_prompts_finetune_seq_idx ON finetune_prompts (finetune_id, seq);
  CREATE TABLE generations (
    id varchar(24) NOT NULL,
    owner_id varchar(24) NOT NULL,
    seq bigserial NOT NULL,
    webhook varchar(2048),
    metadata json,
    CONSTRAINT generations_pkey PRIMARY KEY (id)
  );
  CREATE INDEX generations_owner_seq_idx ON generations (owner_id, seq);
  CREATE TABLE inference_workers (
    id varchar(24) NOT NULL,
    devices text array NOT NULL,
    models text array NOT NULL,
    engines json,
    broken json,
    started_at timestamptz(3) NOT NULL,
    heartbeat_at timestamptz(3) NOT NULL,
    CONSTRAINT inference_workers_pkey PRIMARY KEY (id)
  );
  CREATE INDEX inference_workers_heartbeat_idx ON inference_workers (heartbeat_at);
  CREATE TABLE drawable_models (
    name varchar(64) NOT NULL,
    drawable_at timestamptz(3) NOT NULL,
    CONSTRAINT drawable_models_pkey PRIMARY KEY (name)
  );
  CREATE TABLE sign_in_codes (
    hash bytea NOT NULL,
    sealed_token bytea NOT NULL,
    expires_at timestamptz NOT NULL,
    CONSTRAINT sign_in_codes_pkey PRIMARY KEY (hash)
  );
  CREATE TABLE webhook_deliveries (
    id varchar(24) NOT NULL,
    owner_id varchar(24) NOT NULL,
    task_id varchar(24) NOT NULL,
    url varchar(2048) NOT NULL,
    status varchar(16) NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    next_attempt_at timestamptz(3),
    due_since timestamptz(3),
    claimed_until timestamptz(3),
    created_at timestamptz(3) NOT NULL,
    asked_at timestamptz(3),
    completed_at timestamptz(3),
    CONSTRAINT webhook_deliveries_status_check CHECK (status IN ('pending', 'delivered', 'failed')),
    CONSTRAINT webhook_deliveries_pkey PRIMARY KEY (id)
  );
  CREATE INDEX webhook_deliveries_due_idx ON webhook_deliveries (owner_id, next_attempt_at) WHERE status = 'pending';
  CREATE INDEX webhook_deliveries_status_idx ON webhook_deliveries (status, created_at, id);
  CREATE INDEX webhook_deliveries_task_idx ON webhook_deliveries (task_id, created_at);
  CREATE TABLE webhook_attempts (
    id varchar(24) NOT NULL,
    delivery_id varchar(24) NOT NULL,
    started_at timestamptz(3) NOT NULL,
    duration_ms integer NOT NULL,
    status_code integer,
    error text,
    CONSTRAINT webhook_attempts_pkey PRIMARY KEY (id)
  );
  CREATE INDEX webhook_attempts_delivery_idx ON webhook_attempts (delivery_id, started_at);
  ALTER TABLE styles ADD CONSTRAINT styles_collection_id_fkey FOREIGN KEY (collection_id) REFERENCES collections(id) ON DELETE CASCADE;
  ALTER TABLE images ADD CONSTRAINT images_task_id_fkey FOREIGN KEY (task_id) REFERENCES tasks(id) ON DELETE CASCADE;
  ALTER TABLE drawings ADD CONSTRAINT drawings_id_fkey FOREIGN KEY (id) REFERENCES tasks(id) ON DELETE CASCADE;
  ALTER TABLE finetune_prompts ADD CONSTRAINT finetune_prompts_id_fkey FOREIGN KEY (id) REFERENCES drawings(id) ON DELETE CASCADE;
  ALTER TABLE finetune_prompts ADD CONSTRAINT finetune_prompts_finetune_id_fkey FOREIGN KEY (finetune_id) REFERENCES finetunes(id) ON DELETE CASCADE;
  ALTER TABLE generations ADD CONSTRAINT generations_id_fkey FOREIGN KEY (id) REFERENCES drawings(id) ON DELETE CASCADE;
  ALTER TABLE webhook_deliveries ADD CONSTRAINT webhook_deliveries_task_id_fkey FOREIGN KEY (task_id) REFERENCES tasks(id) ON DELETE CASCADE;
  ALTER TABLE webhook_attempts ADD CONSTRAINT webhook_attempts_delivery_id_fkey FOREIGN KEY (delivery_id) REFERENCES webhook_deliveries(id) ON DELETE CASCADE;
  -- Each of the two has 122 random bits.
  INSERT INTO cursor_keys (id, secret)
  VALUES (1, decode(replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex'));
`;

/** The tables of the first version that was published. */
export class Baseline1796000000000 extends ForwardMigration {
  readonly name = 'Baseline1796000000000';

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(baselineSql);
  }
}
