import { deathsAfterSilence } from '../deaths';
import { isSilent } from '../silence';
import { isOffered } from './offers';
import { queueHeads } from './queue-heads';
import { taskCost } from './task-cost';

/**
 * Compute seconds by which an owner goes before its turn if the worker has its oldest task's model loaded, with the
 * task's Fine-Tune at its scale: about what loading takes. The owner is charged as always, so the others wait at most
 * these seconds longer for each owner who goes before.
 */
const affinitySeconds = 5;

/**
 * Claims a task whose worker is silent, because it has already waited and been charged; else the oldest task of the
 * owner who has used the least compute time. This is deficit round robin with a quantum that approaches zero, which is
 * start-time fair queuing (Goyal, Vin, Cheng 1996). Each owner's virtual time is the sum of its charges; the charge is
 * the estimate until the task ends. One statement, so that a worker that freezes holds no lock. Rows locked by another
 * claim are skipped. A key's limit is its number of slots, and a unique index allows one task per slot.
 * Parameters: the ticket, the limit of keys without their own (0: none), the channel of changes, the time of
 * `silenceUntil`, owners whose tasks are not wanted; those of `isOffered`; each model and Fine-Tune that is loaded, as
 * `weightsLabel` names it.
 */
export const claimDueStatement = `
WITH RECURSIVE ${queueHeads},
abandoned AS (
  SELECT id, slot FROM image_tasks task
  WHERE status = 'processing' AND NOT sandbox AND ${isSilent('$4')}
    AND ${isOffered('task', 6)}
  ORDER BY heartbeat_at LIMIT 1
  FOR UPDATE SKIP LOCKED
),
offers AS MATERIALIZED (
  SELECT owner_id, array_agg(model ORDER BY created_at) AS models,
    (array_agg(weights ORDER BY created_at))[1] = ANY ($8::text[]) AS is_loaded
  FROM queue_heads head
  WHERE NOT EXISTS (SELECT FROM abandoned) AND owner_id <> ALL ($5::text[]) AND ${isOffered('head', 6)}
  GROUP BY owner_id
),
owners AS MATERIALIZED (
  SELECT offers.owner_id, offers.models, place.slot
  FROM offers
  LEFT JOIN fair_shares share ON share.owner_id = offers.owner_id
  LEFT JOIN api_keys caller ON caller.id = offers.owner_id
  CROSS JOIN LATERAL (
    SELECT NULL::integer AS slot WHERE coalesce(caller.max_concurrent, $2) = 0
    UNION ALL
    SELECT slot FROM generate_series(1, coalesce(caller.max_concurrent, $2)) slot
    WHERE NOT EXISTS (
      SELECT 1 FROM image_tasks held
      WHERE held.owner_id = offers.owner_id AND held.status = 'processing' AND held.slot = slot.slot
    )
    LIMIT 1
  ) place
  ORDER BY coalesce(share.virtual_time, 0) - CASE WHEN is_loaded THEN ${affinitySeconds} ELSE 0 END, offers.owner_id
),
next AS (
  SELECT oldest.id, owners.slot FROM owners CROSS JOIN LATERAL unnest(owners.models) AS wanted (model) CROSS JOIN LATERAL (
    SELECT id FROM image_tasks
    WHERE owner_id = owners.owner_id AND model = wanted.model AND status = 'queued' AND NOT sandbox
      AND (not_before IS NULL OR not_before <= now())
    ORDER BY created_at, id LIMIT 1
    FOR UPDATE SKIP LOCKED
  ) oldest
  LIMIT 1
),
due AS (
  SELECT id, slot, true AS retaken FROM abandoned UNION ALL SELECT id, slot, false FROM next
),
claimed AS (
  UPDATE image_tasks task SET
    status = 'processing', attempt = attempt + 1, started_at = coalesce(started_at, now()), heartbeat_at = now(),
    ticket = $1, slot = due.slot, not_before = NULL, drawn_alone = false,
    deaths = CASE WHEN due.retaken THEN ${deathsAfterSilence} ELSE deaths END,
    charged_seconds = CASE WHEN due.retaken THEN charged_seconds ELSE ${taskCost} END
  FROM due WHERE task.id = due.id
  RETURNING task.id, task.owner_id, CASE WHEN due.retaken THEN 0 ELSE task.charged_seconds END AS charge
),
charged AS (
  INSERT INTO fair_shares (owner_id, virtual_time) SELECT owner_id, charge FROM claimed
  ON CONFLICT (owner_id) DO UPDATE SET virtual_time = fair_shares.virtual_time + excluded.virtual_time
)
SELECT id, pg_notify($3, id) FROM claimed`;
