import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * `insert_tasks`: everything that requests insert, in one call. A single SQL statement would set up all its parts at
 * each execution; in a function each part is prepared once per connection and runs only when needed.
 */
export class InsertTasks1795680000000 implements MigrationInterface {
  name = 'InsertTasks1795680000000';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TYPE "new_task" AS (
        "request" integer, "max_queued" integer, "has_record" boolean,
        "id" character varying, "kind" character varying, "owner_id" character varying, "finetune_id" character varying,
        "prompt" text, "negative_prompt" text, "cfg" double precision, "steps" integer, "seed" bigint,
        "scheduler" character varying, "model" character varying, "aspect_ratio" character varying, "high_resolution" boolean,
        "output_format" character varying, "prompt_weighting" boolean, "num_images" integer, "prompt_chunks" integer,
        "sandbox" boolean, "created_at" timestamp with time zone,
        "webhook" character varying, "prompt_as_sent" text, "metadata" json, "job" jsonb
      )
    `);
    await queryRunner.query(insertTasks);
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP FUNCTION "public"."insert_tasks"`);
    await queryRunner.query(`DROP TYPE "public"."new_task"`);
  }
}

/**
 * `given` has the tasks in order of arrival; tasks of one request have the same `request`, and all of them are inserted
 * or none. The result lists the rejected requests: their owner's key is revoked, or its limit has no room beside the
 * `queued` tasks that wait.
 *
 * Plans must not depend on the number of tasks, or each call would plan again. On a name conflict columns win over
 * variables (and the result's columns are variables too), so no table used here may get a column `tasks`, `given`,
 * `kinds`, `owner`, `refused`, `newcomers` or `queue_name`. A later migration that replaces the function must keep
 * these parameters, because processes of the older version keep calling it.
 */
export const insertTasks = `
CREATE FUNCTION "insert_tasks"(given json)
RETURNS TABLE (request integer, revoked boolean, queued integer)
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $function$
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
      (SELECT owner_id FROM image_tasks WHERE status = 'queued' AND NOT sandbox ORDER BY owner_id, created_at, id LIMIT 1)
      UNION ALL
      SELECT next.owner_id FROM waiting CROSS JOIN LATERAL (
        SELECT owner_id FROM image_tasks
        WHERE status = 'queued' AND NOT sandbox AND owner_id > waiting.owner_id ORDER BY owner_id, created_at, id LIMIT 1
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
    output_format, prompt_weighting, num_images, prompt_chunks, sandbox, created_at, status
  )
  SELECT
    id, kind, owner_id, finetune_id, prompt, negative_prompt, cfg, steps, seed, scheduler, model, aspect_ratio, high_resolution,
    output_format, prompt_weighting, num_images, prompt_chunks, sandbox, created_at, 'queued'
  FROM unnest(tasks);
  IF 'generation' = ANY (kinds) THEN
    INSERT INTO generations (id, owner_id, webhook, metadata)
    SELECT id, owner_id, webhook, metadata FROM unnest(tasks) WHERE kind = 'generation' AND has_record;
  END IF;
  IF 'prompt' = ANY (kinds) THEN
    INSERT INTO finetune_prompts (id, owner_id, finetune_id, prompt, metadata)
    SELECT id, owner_id, finetune_id, prompt_as_sent, metadata FROM unnest(tasks) WHERE kind = 'prompt' AND has_record;
  END IF;

  -- The jobs, where they are rows, as BullMQ's own functions write them. Its \`add_flow\` takes as long as all the rest, most of it for a
  -- log of events that nobody here reads, and its \`add_jobs_bulk\` makes temporary tables. Of what they do beyond, nothing concerns
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
$function$`;
