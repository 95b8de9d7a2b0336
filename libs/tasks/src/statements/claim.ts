import type { TaskQueue } from '@app/domain';
import { workerBeatMs } from '../live-workers';
import { queueHeads, waitsIn } from './queue-heads';

/**
 * Compute seconds by which an owner is served early if the worker has its oldest task's model loaded: about what
 * loading takes. The owner is charged as always, so the others wait at most this much longer for each such owner.
 */
const affinitySeconds = 5;

/**
 * A task is offered to every worker only after it has waited this long and no worker has had its model for this long: a
 * restart, or a model that is about to be found, must not cost a picture.
 */
export const undrawableAfterMs = 15_000;

/**
 * In SQL: whether a queued task is offered to a worker: it can draw the task's model, or no worker has had that, or the
 * one that is trained in its place, for `undrawableAfterMs`. A worker names its models every `workerBeatMs`.
 */
const isOffered = `($4::text[] IS NULL OR head.model = ANY ($4) OR $5::boolean
  AND head.created_at < now() - interval '${undrawableAfterMs} ms'
  AND NOT EXISTS (
    SELECT FROM drawable_models seen
    WHERE seen.name = coalesce($7::jsonb ->> head.model, head.model)
      AND seen.drawable_at > now() - interval '${workerBeatMs + undrawableAfterMs} ms'
  ))`;

/**
 * In place of `freePlace`: tasks of a sandbox key take no time of an engine, so it may have any number at once, but for
 * weights that are fetched. The condition is always true, and there because PostgreSQL wants every parameter used.
 */
const noPlace = 'SELECT NULL::integer AS place WHERE $1::integer IS NOT NULL';

/** A free place of the owner's key, in SQL; null if the key has no limit. */
const freePlace = (queue: TaskQueue): string => {
  // A key fetches weights one at a time: its place is 0.
  if (queue === 'weights')
    return `
    SELECT 0 AS place WHERE $1::integer = 1 AND NOT EXISTS (
      SELECT 1 FROM tasks held WHERE held.owner_id = offers.owner_id AND held.status = 'processing' AND held.place = 0
    )`;
  // Places of trainings are negative, and no key has a limit of trainings of its own.
  const [sign, most] = queue === 'training' ? ['-', '$1::integer'] : ['', 'coalesce(caller.max_concurrent, $1)'];
  return `
    SELECT NULL::integer AS place WHERE ${most} = 0
    UNION ALL
    SELECT ${sign}place FROM generate_series(1, ${most}) place
    WHERE NOT EXISTS (
      SELECT 1 FROM tasks held
      WHERE held.owner_id = offers.owner_id AND held.status = 'processing' AND held.place = ${sign}place.place
    )
    LIMIT 1`;
};

/**
 * Claims the oldest task of the owner who has used the least compute time. This is deficit round robin with a quantum
 * that approaches zero, which is start-time fair queuing (Goyal, Vin, Cheng 1996). Each owner's virtual time is the sum
 * of its charges; the charge is the estimate until the task ends. One statement, so that a worker that freezes holds no
 * lock. Rows locked by another claim are skipped. A key's limit is its number of places, and a unique index allows one
 * task in each. Parameters: the limit of keys without their own, and of the trainings of any (0: none), the channel of
 * changes, owners whose tasks are not wanted, the models that can be drawn (null: any), whether what no worker can draw
 * is wanted, the models that are loaded, and the model that is trained in place of another by the name of that.
 */
export const claimStatement = (sandbox: boolean, queue: TaskQueue = 'drawing'): string => `
WITH RECURSIVE ${queueHeads(queue, sandbox)},
offers AS MATERIALIZED (
  SELECT owner_id, array_agg(model ORDER BY created_at) AS models,
    (array_agg(model ORDER BY created_at))[1] = ANY ($6::text[]) AS is_loaded
  FROM queue_heads head
  WHERE owner_id <> ALL ($3::text[]) AND ${isOffered}
  GROUP BY owner_id
),
owners AS MATERIALIZED (
  SELECT offers.owner_id, offers.models, free.place
  FROM offers
  LEFT JOIN fair_shares share ON share.owner_id = offers.owner_id
  LEFT JOIN api_keys caller ON caller.id = offers.owner_id
  CROSS JOIN LATERAL (${sandbox && queue !== 'weights' ? noPlace : freePlace(queue)}) free
  ORDER BY coalesce(share.virtual_time, 0) - CASE WHEN is_loaded THEN ${affinitySeconds} ELSE 0 END, offers.owner_id
),
due AS (
  SELECT oldest.id, owners.place FROM owners CROSS JOIN LATERAL unnest(owners.models) AS wanted (model) CROSS JOIN LATERAL (
    SELECT id FROM tasks
    WHERE owner_id = owners.owner_id AND model = wanted.model AND ${waitsIn([queue], { sandbox })}
      AND (not_before IS NULL OR not_before <= now())
    ORDER BY created_at, id LIMIT 1
    FOR UPDATE SKIP LOCKED
  ) oldest
  LIMIT 1
),
claimed AS (
  UPDATE tasks task SET
    status = 'processing', attempt = attempt + 1, started_at = coalesce(started_at, now()), claimed_at = now(), heartbeat_at = now(),
    place = due.place, not_before = NULL, drawn_alone = false,
    charged_seconds = ${sandbox ? '0' : 'cost'}
  FROM due WHERE task.id = due.id
  RETURNING task.id, task.attempt, task.owner_id, task.charged_seconds AS charge
),
charged AS (
  INSERT INTO fair_shares (owner_id, virtual_time) SELECT owner_id, charge FROM claimed WHERE charge > 0
  ON CONFLICT (owner_id) DO UPDATE SET virtual_time = fair_shares.virtual_time + excluded.virtual_time
)
SELECT id, attempt, pg_notify($2, id) FROM claimed`;

/** Whether a task waits in a queue for a model that is not in $1. */
export const taskForOtherModelsStatement = (queue: TaskQueue): string => `
WITH RECURSIVE ${queueHeads(queue, false)}
SELECT EXISTS (SELECT FROM queue_heads WHERE model <> ALL ($1)) AS waits`;
