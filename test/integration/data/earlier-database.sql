CREATE TYPE public.new_task AS (
	request integer,
	max_queued integer,
	has_record boolean,
	id character varying,
	kind character varying,
	owner_id character varying,
	finetune_id character varying,
	prompt text,
	negative_prompt text,
	cfg double precision,
	steps integer,
	seed bigint,
	scheduler character varying,
	model character varying,
	aspect_ratio character varying,
	high_resolution boolean,
	output_format character varying,
	prompt_weighting boolean,
	num_images integer,
	prompt_chunks integer,
	sandbox boolean,
	created_at timestamp with time zone,
	webhook character varying,
	prompt_as_sent text,
	metadata json,
	job jsonb
);
CREATE FUNCTION public.insert_tasks(given json) RETURNS TABLE(request integer, revoked boolean, queued integer)
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
#variable_conflict use_column
DECLARE
  tasks new_task[] := ARRAY(SELECT task FROM json_populate_recordset(NULL::new_task, given) AS task);
  kinds text[] := ARRAY(SELECT DISTINCT kind FROM unnest(tasks) WHERE has_record);
  owner record;
  refused integer[];
  newcomers text[] := '{}';
  queue_name text;
BEGIN
  -- A cap holds however many processes admit at once: what they committed before the lock was had is seen by what follows. Always in
  -- one order, so that no two transactions wait for each other.
  PERFORM pg_advisory_xact_lock(hashtextextended('admission ' || owner_id, 0))
  FROM (SELECT DISTINCT owner_id FROM unnest(tasks) WHERE max_queued > 0 ORDER BY owner_id) AS capped;
  -- One look into an index for each owner: the limits keep the planner from going through everybody's rows instead.
  FOR owner IN
    SELECT owner_id AS id, cap, size,
      (SELECT revoked_at FROM api_keys WHERE id = owner_id LIMIT 1) IS NOT NULL AS is_revoked,
      (SELECT count(*)::integer FROM (
        SELECT FROM image_tasks WHERE owner_id = owners.owner_id AND status = 'queued' LIMIT cap
      ) AS counted) AS queued,
      has_drawing
        AND (SELECT id FROM image_tasks WHERE owner_id = owners.owner_id AND status = 'queued' AND NOT sandbox LIMIT 1) IS NULL
        AND (SELECT id FROM image_tasks WHERE owner_id = owners.owner_id AND status = 'processing' AND NOT sandbox LIMIT 1) IS NULL
        AS is_newcomer
    FROM (
      SELECT owner_id, max(max_queued) AS cap, count(*) AS size, NOT bool_and(sandbox) AS has_drawing
      FROM unnest(tasks) GROUP BY owner_id
    ) AS owners
  LOOP
    IF owner.is_revoked OR owner.cap > 0 AND owner.queued + owner.size > owner.cap THEN
      refused := ARRAY(
        SELECT DISTINCT request FROM (
          SELECT request, count(*) OVER (ORDER BY request) AS place FROM unnest(tasks) WHERE owner_id = owner.id
        ) AS own WHERE owner.is_revoked OR owner.queued + place > owner.cap
      );
      tasks := ARRAY(SELECT task FROM unnest(tasks) AS task WHERE request <> ALL (refused));
      RETURN QUERY SELECT each, owner.is_revoked, owner.queued FROM unnest(refused) AS each;
    END IF;
    IF owner.is_newcomer THEN
      newcomers := newcomers || owner.id::text;
    END IF;
  END LOOP;
  -- Newcomers are put level with the one who has had the least of those who have something to draw, for a rest earns no credit; what is
  -- still being drawn counts as not yet charged, for its estimate may be far too high. Where nobody else waits, they are put level with
  -- the first of them, as if they had come one after the other.
  IF newcomers <> '{}' THEN
    WITH RECURSIVE waiting (owner_id) AS (
      (SELECT owner_id FROM image_tasks WHERE status = 'queued' AND NOT sandbox ORDER BY owner_id, model, created_at, id LIMIT 1)
      UNION ALL
      SELECT next.owner_id FROM waiting CROSS JOIN LATERAL (
        SELECT owner_id FROM image_tasks
        WHERE status = 'queued' AND NOT sandbox AND owner_id > waiting.owner_id ORDER BY owner_id, model, created_at, id LIMIT 1
      ) AS next
    ),
    drawing AS (
      SELECT owner_id, sum(charged_seconds) AS charged FROM image_tasks
      WHERE status = 'processing' AND NOT sandbox GROUP BY owner_id
    ),
    newcomer AS MATERIALIZED (
      SELECT owner_id, min(request) AS first FROM unnest(tasks)
      WHERE NOT sandbox AND owner_id = ANY (newcomers) GROUP BY owner_id
    )
    INSERT INTO fair_shares (owner_id, virtual_time)
    SELECT owner_id, coalesce(
      (SELECT min(share.virtual_time - coalesce(drawing.charged, 0))
       FROM (SELECT owner_id FROM waiting UNION SELECT owner_id FROM drawing) AS present
       JOIN fair_shares AS share USING (owner_id) LEFT JOIN drawing USING (owner_id)),
      (SELECT virtual_time FROM newcomer JOIN fair_shares USING (owner_id) ORDER BY first LIMIT 1),
      0
    )
    FROM newcomer ORDER BY owner_id
    ON CONFLICT (owner_id) DO UPDATE SET virtual_time = greatest(fair_shares.virtual_time, excluded.virtual_time);
  END IF;
  INSERT INTO image_tasks (
    id, kind, owner_id, finetune_id, prompt, negative_prompt, cfg, steps, seed, scheduler, model, aspect_ratio, high_resolution,
    output_format, prompt_weighting, num_images, prompt_chunks, sandbox, created_at, status, weights_hash, weights_scale
  )
  SELECT
    id, kind, owner_id, finetune_id, prompt, negative_prompt, cfg, steps, seed, scheduler, model, aspect_ratio, high_resolution,
    output_format, prompt_weighting, num_images, prompt_chunks, sandbox, created_at, 'queued', (SELECT weights_hash FROM finetunes WHERE finetunes.id = finetune_id), (SELECT weights_scale FROM finetunes WHERE finetunes.id = finetune_id)
  FROM unnest(tasks);
  IF 'generation' = ANY (kinds) THEN
    INSERT INTO generations (id, owner_id, webhook, metadata)
    SELECT id, owner_id, webhook, metadata FROM unnest(tasks) WHERE kind = 'generation' AND has_record;
  END IF;
  IF 'prompt' = ANY (kinds) THEN
    INSERT INTO finetune_prompts (id, owner_id, finetune_id, prompt, metadata, webhook)
    SELECT id, owner_id, finetune_id, prompt_as_sent, metadata, webhook FROM unnest(tasks) WHERE kind = 'prompt' AND has_record;
  END IF;
  -- The jobs, where they are rows, as BullMQ's own functions write them. Its `add_flow` takes as long as all the rest, most of it for a
  -- log of events that nobody here reads, and its `add_jobs_bulk` makes temporary tables. Of what they do beyond, nothing concerns
  -- jobs without parents and deduplication whose ids are new. Workers are woken when the transaction commits.
  FOR queue_name IN SELECT DISTINCT job ->> 'queue' FROM unnest(tasks) WHERE job IS NOT NULL LOOP
    INSERT INTO bullmq.job (queue, id, seq, name, state, data, opts, priority, delay_ms, max_attempts, added_at_ms, process_at_ms)
    SELECT queue_name, job ->> 'id', nextval('bullmq.job_seq'), queue_name,
      (CASE WHEN delay > 0 THEN 'delayed' ELSE 'waiting' END)::bullmq.job_state,
      job -> 'data', job -> 'opts', 0, delay, 0, added, CASE WHEN delay > 0 THEN added + delay END
    FROM (
      SELECT job, (job ->> 'delay')::bigint AS delay, (job ->> 'timestamp')::bigint AS added
      FROM unnest(tasks) WHERE job ->> 'queue' = queue_name
    ) AS added_jobs;
    PERFORM pg_notify('bullmq_jobs', queue_name);
  END LOOP;
END
$$;
CREATE TABLE public.api_keys (
    id character varying(24) NOT NULL,
    name character varying(200) NOT NULL,
    prefix character varying(16) NOT NULL,
    secret_hash bytea NOT NULL,
    webhook_secret character varying(80) NOT NULL,
    scopes text[] DEFAULT '{read,write}'::text[] NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    last_used_at timestamp with time zone,
    revoked_at timestamp with time zone,
    previous_secret_hash bytea,
    previous_secret_expires_at timestamp with time zone,
    previous_webhook_secret character varying(80),
    previous_webhook_secret_expires_at timestamp with time zone,
    sandbox boolean DEFAULT false NOT NULL,
    rate_limit_per_minute integer,
    max_queued integer,
    max_concurrent integer,
    retention_days integer,
    max_storage_mb integer,
    seq bigint NOT NULL
);
CREATE SEQUENCE public.api_keys_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.api_keys_seq_seq OWNED BY public.api_keys.seq;
CREATE TABLE public.collections (
    id character varying(24) NOT NULL,
    owner_id character varying(24),
    seq bigint NOT NULL,
    name character varying(200) NOT NULL,
    created_at timestamp(3) with time zone NOT NULL
);
CREATE SEQUENCE public.collections_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.collections_seq_seq OWNED BY public.collections.seq;
CREATE TABLE public.cursor_keys (
    id integer NOT NULL,
    secret bytea NOT NULL
);
CREATE TABLE public.daily_usage (
    owner_id character varying(24) NOT NULL,
    day date NOT NULL,
    model character varying(64) NOT NULL,
    finetune_id character varying(24) NOT NULL,
    images bigint NOT NULL,
    steps bigint NOT NULL,
    compute_seconds double precision NOT NULL
);
CREATE TABLE public.drawable_models (
    name character varying(64) NOT NULL,
    drawable_at timestamp(3) with time zone NOT NULL
);
CREATE TABLE public.fair_shares (
    owner_id character varying(24) NOT NULL,
    virtual_time double precision DEFAULT '0'::double precision NOT NULL
)
WITH (fillfactor='50');
CREATE TABLE public.finetune_prompts (
    id character varying(24) NOT NULL,
    owner_id character varying(24) NOT NULL,
    finetune_id character varying(24) NOT NULL,
    seq bigint NOT NULL,
    prompt text NOT NULL,
    metadata json,
    webhook character varying(2048)
);
CREATE SEQUENCE public.finetune_prompts_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.finetune_prompts_seq_seq OWNED BY public.finetune_prompts.seq;
CREATE TABLE public.finetunes (
    id character varying(24) NOT NULL,
    owner_id character varying(24) NOT NULL,
    seq bigint NOT NULL,
    name character varying(200) NOT NULL,
    title character varying(200),
    token character varying(64) NOT NULL,
    model character varying(64) NOT NULL,
    status character varying(16) NOT NULL,
    metadata json,
    error_message text,
    weights_kind character varying(24),
    weights_hash character varying(64),
    weights_key character varying(256),
    weights_scale double precision DEFAULT '1'::double precision NOT NULL,
    created_at timestamp(3) with time zone NOT NULL,
    weights_vectors integer,
    weights_bytes bigint,
    weights_base character varying(128)
);
CREATE SEQUENCE public.finetunes_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.finetunes_seq_seq OWNED BY public.finetunes.seq;
CREATE TABLE public.generations (
    id character varying(24) NOT NULL,
    owner_id character varying(24) NOT NULL,
    seq bigint NOT NULL,
    webhook character varying(2048),
    metadata json
);
CREATE SEQUENCE public.generations_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.generations_seq_seq OWNED BY public.generations.seq;
CREATE TABLE public.idempotent_replies (
    owner_id character varying(24) NOT NULL,
    key character varying(255) NOT NULL,
    fingerprint character varying(64) NOT NULL,
    status integer NOT NULL,
    body text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    record_ids character varying(24)[] DEFAULT '{}'::character varying[] NOT NULL
);
CREATE TABLE public.image_tasks (
    id character varying(24) NOT NULL,
    kind character varying(16) NOT NULL,
    owner_id character varying(24) NOT NULL,
    finetune_id character varying(24),
    prompt text NOT NULL,
    negative_prompt text,
    cfg double precision NOT NULL,
    steps integer NOT NULL,
    seed bigint NOT NULL,
    scheduler character varying(32),
    model character varying(64) NOT NULL,
    aspect_ratio character varying(16) NOT NULL,
    high_resolution boolean NOT NULL,
    output_format character varying(8) DEFAULT 'png'::character varying NOT NULL,
    prompt_weighting boolean DEFAULT false NOT NULL,
    num_images integer NOT NULL,
    status character varying(16) NOT NULL,
    attempt integer DEFAULT 0 NOT NULL,
    enqueued integer DEFAULT 1 NOT NULL,
    heartbeat_at timestamp with time zone,
    served_by character varying(128),
    upscaler character varying(128),
    prompt_chunks integer,
    error text,
    compute_seconds double precision,
    created_at timestamp(3) with time zone NOT NULL,
    started_at timestamp(3) with time zone,
    completed_at timestamp(3) with time zone,
    sandbox boolean DEFAULT false NOT NULL,
    not_before timestamp(3) with time zone,
    ticket character varying(40),
    slot integer,
    charged_seconds double precision DEFAULT '0'::double precision NOT NULL,
    deaths integer DEFAULT 0 NOT NULL,
    picture_bytes bigint DEFAULT '0'::bigint NOT NULL,
    drawn_alone boolean DEFAULT false NOT NULL,
    failures integer DEFAULT 0 NOT NULL,
    weights_hash character varying(64),
    weights_scale double precision,
    CONSTRAINT image_tasks_kind_check CHECK (((kind)::text = ANY ((ARRAY['generation'::character varying, 'prompt'::character varying])::text[]))),
    CONSTRAINT image_tasks_status_check CHECK (((status)::text = ANY ((ARRAY['queued'::character varying, 'processing'::character varying, 'succeeded'::character varying, 'failed'::character varying, 'canceled'::character varying])::text[])))
);
CREATE TABLE public.images (
    id character varying(24) NOT NULL,
    task_id character varying(24) NOT NULL,
    index integer NOT NULL,
    token character varying(24) NOT NULL,
    storage_key character varying(256) NOT NULL,
    content_type character varying(32) NOT NULL,
    width integer NOT NULL,
    height integer NOT NULL,
    bytes integer NOT NULL
);
CREATE TABLE public.inference_workers (
    id character varying(24) NOT NULL,
    devices text[] NOT NULL,
    started_at timestamp(3) with time zone NOT NULL,
    heartbeat_at timestamp(3) with time zone NOT NULL,
    models text[],
    engines json,
    broken json
);
CREATE TABLE public.migrations (
    id integer NOT NULL,
    "timestamp" bigint NOT NULL,
    name character varying NOT NULL
);
CREATE SEQUENCE public.migrations_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.migrations_id_seq OWNED BY public.migrations.id;
CREATE UNLOGGED TABLE public.rate_buckets (
    owner_id character varying(24) NOT NULL,
    tokens double precision NOT NULL,
    granted boolean NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    taken integer DEFAULT 0 NOT NULL
)
WITH (fillfactor='50');
CREATE TABLE public.readiness_probes (
    id integer NOT NULL,
    probed_at timestamp(3) with time zone NOT NULL
);
CREATE TABLE public.sign_in_codes (
    hash bytea NOT NULL,
    sealed_token bytea NOT NULL,
    expires_at timestamp with time zone NOT NULL
);
CREATE TABLE public.storage_use (
    owner_id character varying(24) NOT NULL,
    picture_bytes bigint DEFAULT '0'::bigint NOT NULL,
    weight_bytes bigint DEFAULT '0'::bigint NOT NULL,
    counted_at timestamp with time zone
)
WITH (fillfactor='50');
CREATE TABLE public.styles (
    id character varying(24) NOT NULL,
    owner_id character varying(24),
    collection_id character varying(24) NOT NULL,
    seq bigint NOT NULL,
    name character varying(200) NOT NULL,
    template text NOT NULL,
    negative_prompt text,
    cfg double precision,
    steps integer,
    source_prompt_id character varying(24),
    thumbnail_token character varying(24),
    thumbnail_key character varying(256),
    created_at timestamp(3) with time zone NOT NULL,
    thumbnail_claimed_at timestamp(3) with time zone
);
CREATE SEQUENCE public.styles_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.styles_seq_seq OWNED BY public.styles.seq;
CREATE UNLOGGED TABLE public.uploads (
    id character varying(24) NOT NULL,
    owner_id character varying(24) NOT NULL,
    bytes bigint NOT NULL,
    renewed_at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.webhook_attempts (
    id character varying(24) NOT NULL,
    delivery_id character varying(24) NOT NULL,
    started_at timestamp(3) with time zone NOT NULL,
    duration_ms integer NOT NULL,
    status_code integer,
    error text
);
CREATE TABLE public.webhook_deliveries (
    id character varying(24) NOT NULL,
    owner_id character varying(24) NOT NULL,
    generation_id character varying(24) NOT NULL,
    url character varying(2048) NOT NULL,
    status character varying(16) NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    enqueued integer DEFAULT 1 NOT NULL,
    next_attempt_at timestamp(3) with time zone,
    created_at timestamp(3) with time zone NOT NULL,
    completed_at timestamp(3) with time zone,
    asked_at timestamp(3) with time zone,
    CONSTRAINT webhook_deliveries_status_check CHECK (((status)::text = ANY ((ARRAY['pending'::character varying, 'delivered'::character varying, 'failed'::character varying])::text[])))
);
ALTER TABLE ONLY public.api_keys ALTER COLUMN seq SET DEFAULT nextval('public.api_keys_seq_seq'::regclass);
ALTER TABLE ONLY public.collections ALTER COLUMN seq SET DEFAULT nextval('public.collections_seq_seq'::regclass);
ALTER TABLE ONLY public.finetune_prompts ALTER COLUMN seq SET DEFAULT nextval('public.finetune_prompts_seq_seq'::regclass);
ALTER TABLE ONLY public.finetunes ALTER COLUMN seq SET DEFAULT nextval('public.finetunes_seq_seq'::regclass);
ALTER TABLE ONLY public.generations ALTER COLUMN seq SET DEFAULT nextval('public.generations_seq_seq'::regclass);
ALTER TABLE ONLY public.migrations ALTER COLUMN id SET DEFAULT nextval('public.migrations_id_seq'::regclass);
ALTER TABLE ONLY public.styles ALTER COLUMN seq SET DEFAULT nextval('public.styles_seq_seq'::regclass);
INSERT INTO public.api_keys VALUES ('k', 'camera', 'abc', '\x00', 's', '{read,write}', '2026-11-26 14:35:27.218689+00', NULL, NULL, NULL, NULL, NULL, NULL, false, NULL, NULL, NULL, NULL, NULL, 1);
INSERT INTO public.cursor_keys VALUES (1, '\x8db93b355431499792dc3e436f1d79ec6963a73423c1438b8ffafb94d156522c');
INSERT INTO public.finetune_prompts VALUES ('p', 'k', 'f', 1, 'a robot', NULL, NULL);
INSERT INTO public.finetunes VALUES ('f', 'k', 1, 'robot', NULL, 'zwx', 'shapes', 'registered', NULL, NULL, NULL, NULL, NULL, 1, '2026-11-26 14:35:27.229+00', NULL, NULL, NULL);
INSERT INTO public.generations VALUES ('g', 'k', 1, 'https://shop.example/hook', '{"order": 7}');
INSERT INTO public.image_tasks VALUES ('g', 'generation', 'k', NULL, 'a star', NULL, 7.5, 30, 4294967295, NULL, 'shapes', 'square', false, 'png', false, 2, 'succeeded', 0, 1, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-20 10:00:00+00', NULL, NULL, false, NULL, NULL, NULL, 0, 0, 0, false, 0, NULL, NULL);
INSERT INTO public.image_tasks VALUES ('p', 'prompt', 'k', 'f', 'a zwx robot', NULL, 7.5, 20, 7, NULL, 'shapes', 'landscape', true, 'png', false, 1, 'queued', 0, 1, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-20 11:00:00+00', NULL, NULL, false, NULL, NULL, NULL, 0, 0, 0, false, 0, NULL, 0.5);
INSERT INTO public.images VALUES ('i', 'g', 0, 't', 'g/1/0.png', 'image/png', 512, 512, 9);
INSERT INTO public.migrations VALUES (1, 1795200000000, 'Initial1795200000000');
INSERT INTO public.migrations VALUES (2, 1795300000000, 'InferenceWorkers1795300000000');
INSERT INTO public.migrations VALUES (3, 1795400000000, 'Idempotency1795400000000');
INSERT INTO public.migrations VALUES (4, 1795500000000, 'FairQueue1795500000000');
INSERT INTO public.migrations VALUES (5, 1795510000000, 'KeyLimits1795510000000');
INSERT INTO public.migrations VALUES (6, 1795520000000, 'Retention1795520000000');
INSERT INTO public.migrations VALUES (7, 1795530000000, 'Deaths1795530000000');
INSERT INTO public.migrations VALUES (8, 1795610000000, 'PromptLengths1795610000000');
INSERT INTO public.migrations VALUES (9, 1795640000000, 'StorageUse1795640000000');
INSERT INTO public.migrations VALUES (10, 1795650000000, 'RateLeases1795650000000');
INSERT INTO public.migrations VALUES (11, 1795650100000, 'RepliesOfRecords1795650100000');
INSERT INTO public.migrations VALUES (12, 1795650110000, 'RecordsOfOldReplies1795650110000');
INSERT INTO public.migrations VALUES (13, 1795650120000, 'RepliesByRecord1795650120000');
INSERT INTO public.migrations VALUES (14, 1795660000000, 'Redelivery1795660000000');
INSERT INTO public.migrations VALUES (15, 1795660100000, 'ReadinessProbes1795660100000');
INSERT INTO public.migrations VALUES (16, 1795660200000, 'ThumbnailClaims1795660200000');
INSERT INTO public.migrations VALUES (17, 1795670000000, 'OpenSandboxTasks1795670000000');
INSERT INTO public.migrations VALUES (18, 1795670010000, 'NoOpenTasksOfAll1795670010000');
INSERT INTO public.migrations VALUES (19, 1795680000000, 'InsertTasks1795680000000');
INSERT INTO public.migrations VALUES (20, 1795690000000, 'MissingThumbnails1795690000000');
INSERT INTO public.migrations VALUES (21, 1795690010000, 'NoSourcesOfAll1795690010000');
INSERT INTO public.migrations VALUES (22, 1795710000000, 'QueuedByModel1795710000000');
INSERT INTO public.migrations VALUES (23, 1795710010000, 'ClaimsThatKnow1795710010000');
INSERT INTO public.migrations VALUES (24, 1795710020000, 'NoQueuedOfAllModels1795710020000');
INSERT INTO public.migrations VALUES (25, 1795720000000, 'CursorKeys1795720000000');
INSERT INTO public.migrations VALUES (26, 1795720010000, 'TasksByTime1795720010000');
INSERT INTO public.migrations VALUES (27, 1795730000000, 'PromptWebhooks1795730000000');
INSERT INTO public.migrations VALUES (28, 1795730010000, 'DeliveriesOfTasks1795730010000');
INSERT INTO public.migrations VALUES (29, 1795740000000, 'WeightsBase1795740000000');
INSERT INTO public.migrations VALUES (30, 1795750000000, 'KeyOrder1795750000000');
INSERT INTO public.migrations VALUES (31, 1795760000000, 'SignInCodes1795760000000');
INSERT INTO public.migrations VALUES (32, 1795770000000, 'WorkerEngines1795770000000');
INSERT INTO public.migrations VALUES (33, 1795770010000, 'FailedTasks1795770010000');
INSERT INTO public.migrations VALUES (34, 1795770020000, 'DeliveriesByTime1795770020000');
INSERT INTO public.migrations VALUES (35, 1795780000000, 'StylesWithoutControls1795780000000');
INSERT INTO public.migrations VALUES (36, 1795790000000, 'AcceptedScale1795790000000');
INSERT INTO public.migrations VALUES (37, 1795800000000, 'BrokenModels1795800000000');
INSERT INTO public.webhook_attempts VALUES ('a', 'd', '2026-11-20 10:00:00+00', 12, 500, NULL);
INSERT INTO public.webhook_deliveries VALUES ('d', 'k', 'g', 'https://shop.example/hook', 'pending', 0, 1, '2026-11-20 12:00:00+00', '2026-11-20 10:00:00+00', NULL, NULL);
SELECT pg_catalog.setval('public.api_keys_seq_seq', 1, true);
SELECT pg_catalog.setval('public.collections_seq_seq', 1, false);
SELECT pg_catalog.setval('public.finetune_prompts_seq_seq', 1, true);
SELECT pg_catalog.setval('public.finetunes_seq_seq', 1, true);
SELECT pg_catalog.setval('public.generations_seq_seq', 1, true);
SELECT pg_catalog.setval('public.migrations_id_seq', 37, true);
SELECT pg_catalog.setval('public.styles_seq_seq', 1, false);
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_prefix_key UNIQUE (prefix);
ALTER TABLE ONLY public.collections
    ADD CONSTRAINT collections_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.cursor_keys
    ADD CONSTRAINT cursor_keys_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.daily_usage
    ADD CONSTRAINT daily_usage_pkey PRIMARY KEY (owner_id, day, model, finetune_id);
ALTER TABLE ONLY public.drawable_models
    ADD CONSTRAINT drawable_models_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.fair_shares
    ADD CONSTRAINT fair_shares_pkey PRIMARY KEY (owner_id);
ALTER TABLE ONLY public.finetune_prompts
    ADD CONSTRAINT finetune_prompts_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.finetunes
    ADD CONSTRAINT finetunes_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.generations
    ADD CONSTRAINT generations_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.idempotent_replies
    ADD CONSTRAINT idempotent_replies_pkey PRIMARY KEY (owner_id, key);
ALTER TABLE ONLY public.image_tasks
    ADD CONSTRAINT image_tasks_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.images
    ADD CONSTRAINT images_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.images
    ADD CONSTRAINT images_token_key UNIQUE (token);
ALTER TABLE ONLY public.inference_workers
    ADD CONSTRAINT inference_workers_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.migrations
    ADD CONSTRAINT migrations_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.rate_buckets
    ADD CONSTRAINT rate_buckets_pkey PRIMARY KEY (owner_id);
ALTER TABLE ONLY public.readiness_probes
    ADD CONSTRAINT readiness_probes_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.sign_in_codes
    ADD CONSTRAINT sign_in_codes_pkey PRIMARY KEY (hash);
ALTER TABLE ONLY public.storage_use
    ADD CONSTRAINT storage_use_pkey PRIMARY KEY (owner_id);
ALTER TABLE ONLY public.styles
    ADD CONSTRAINT styles_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.styles
    ADD CONSTRAINT styles_thumbnail_token_key UNIQUE (thumbnail_token);
ALTER TABLE ONLY public.uploads
    ADD CONSTRAINT uploads_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.webhook_attempts
    ADD CONSTRAINT webhook_attempts_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.webhook_deliveries
    ADD CONSTRAINT webhook_deliveries_pkey PRIMARY KEY (id);
CREATE INDEX api_keys_seq_idx ON public.api_keys USING btree (seq);
CREATE INDEX collections_owner_seq_idx ON public.collections USING btree (owner_id, seq);
CREATE INDEX finetune_prompts_finetune_seq_idx ON public.finetune_prompts USING btree (finetune_id, seq);
CREATE INDEX finetunes_owner_seq_idx ON public.finetunes USING btree (owner_id, seq);
CREATE INDEX generations_owner_seq_idx ON public.generations USING btree (owner_id, seq);
CREATE INDEX idempotent_replies_created_idx ON public.idempotent_replies USING btree (created_at);
CREATE INDEX idempotent_replies_records_idx ON public.idempotent_replies USING gin (record_ids);
CREATE INDEX image_tasks_completed_idx ON public.image_tasks USING btree (owner_id, completed_at) WHERE (completed_at IS NOT NULL);
CREATE INDEX image_tasks_created_idx ON public.image_tasks USING btree (owner_id, created_at);
CREATE INDEX image_tasks_failed_idx ON public.image_tasks USING btree (completed_at, id) WHERE (((status)::text = 'failed'::text) AND (NOT sandbox));
CREATE INDEX image_tasks_owner_idx ON public.image_tasks USING btree (owner_id, status);
CREATE INDEX image_tasks_queued_model_idx ON public.image_tasks USING btree (owner_id, model, created_at, id) WHERE (((status)::text = 'queued'::text) AND (NOT sandbox));
CREATE INDEX image_tasks_sandbox_idx ON public.image_tasks USING btree (created_at) WHERE (((status)::text = ANY ((ARRAY['queued'::character varying, 'processing'::character varying])::text[])) AND sandbox);
CREATE UNIQUE INDEX image_tasks_slot_idx ON public.image_tasks USING btree (owner_id, slot) WHERE ((status)::text = 'processing'::text);
CREATE INDEX image_tasks_ticket_idx ON public.image_tasks USING btree (ticket) WHERE ((status)::text = 'processing'::text);
CREATE UNIQUE INDEX images_task_idx ON public.images USING btree (task_id, index);
CREATE INDEX inference_workers_heartbeat_idx ON public.inference_workers USING btree (heartbeat_at);
CREATE INDEX styles_collection_seq_idx ON public.styles USING btree (collection_id, seq);
CREATE INDEX styles_missing_thumbnail_idx ON public.styles USING btree (owner_id, source_prompt_id, seq) WHERE ((source_prompt_id IS NOT NULL) AND (thumbnail_key IS NULL));
CREATE INDEX uploads_owner_idx ON public.uploads USING btree (owner_id);
CREATE INDEX webhook_attempts_delivery_idx ON public.webhook_attempts USING btree (delivery_id, started_at);
CREATE INDEX webhook_deliveries_due_idx ON public.webhook_deliveries USING btree (next_attempt_at) WHERE ((status)::text = 'pending'::text);
CREATE INDEX webhook_deliveries_generation_idx ON public.webhook_deliveries USING btree (generation_id, created_at);
CREATE INDEX webhook_deliveries_status_idx ON public.webhook_deliveries USING btree (status, created_at, id);
ALTER TABLE ONLY public.finetune_prompts
    ADD CONSTRAINT finetune_prompts_finetune_id_fkey FOREIGN KEY (finetune_id) REFERENCES public.finetunes(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.finetune_prompts
    ADD CONSTRAINT finetune_prompts_id_fkey FOREIGN KEY (id) REFERENCES public.image_tasks(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.generations
    ADD CONSTRAINT generations_id_fkey FOREIGN KEY (id) REFERENCES public.image_tasks(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.images
    ADD CONSTRAINT images_task_id_fkey FOREIGN KEY (task_id) REFERENCES public.image_tasks(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.styles
    ADD CONSTRAINT styles_collection_id_fkey FOREIGN KEY (collection_id) REFERENCES public.collections(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.webhook_attempts
    ADD CONSTRAINT webhook_attempts_delivery_id_fkey FOREIGN KEY (delivery_id) REFERENCES public.webhook_deliveries(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.webhook_deliveries
    ADD CONSTRAINT webhook_deliveries_task_id_fkey FOREIGN KEY (generation_id) REFERENCES public.image_tasks(id) ON DELETE CASCADE;
