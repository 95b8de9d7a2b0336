import { silenceFactor } from '../silence';
import { taskCost } from './task-cost';

/**
 * The owners with a queued task: one step down the index for each, however many rows each has. The order is that of
 * `image_tasks_queued_idx`, which contains only queued rows. The database's function `insert_tasks` uses the same query.
 */
const waiting = `waiting (owner_id) AS (
  (SELECT owner_id FROM image_tasks WHERE status = 'queued' AND NOT sandbox ORDER BY owner_id, created_at, id LIMIT 1)
  UNION ALL
  SELECT next.owner_id FROM waiting CROSS JOIN LATERAL (
    SELECT owner_id FROM image_tasks
    WHERE status = 'queued' AND NOT sandbox AND owner_id > waiting.owner_id ORDER BY owner_id, created_at, id LIMIT 1
  ) next
)`;

/**
 * Claims a task whose worker is silent, because it has already waited and been charged; else the oldest task of the owner who has
 * used the least compute time. This is deficit round robin with a quantum that approaches zero, which is start-time fair queuing
 * (Goyal, Vin, Cheng 1996). Each owner's virtual time is the sum of its charges; the charge is the estimate until the task ends.
 * One statement, so that a worker that freezes holds no lock. Rows locked by another claim are skipped. A key's limit is its
 * number of slots, and a unique index allows one task per slot.
 * Parameters: the ticket, the limit of keys without their own (0: none), the channel of changes, the milliseconds of silence,
 * owners whose tasks are not wanted.
 */
export const claimDueStatement = `
WITH RECURSIVE ${waiting},
abandoned AS (
  SELECT id, slot FROM image_tasks
  WHERE status = 'processing' AND NOT sandbox AND heartbeat_at < now() - $4 * ${silenceFactor} * interval '1 ms'
  ORDER BY heartbeat_at LIMIT 1
  FOR UPDATE SKIP LOCKED
),
owners AS MATERIALIZED (
  SELECT waiting.owner_id, place.slot
  FROM waiting
  LEFT JOIN fair_shares share ON share.owner_id = waiting.owner_id
  LEFT JOIN api_keys caller ON caller.id = waiting.owner_id
  CROSS JOIN LATERAL (
    SELECT NULL::integer AS slot WHERE coalesce(caller.max_concurrent, $2) = 0
    UNION ALL
    SELECT slot FROM generate_series(1, coalesce(caller.max_concurrent, $2)) slot
    WHERE NOT EXISTS (
      SELECT 1 FROM image_tasks held
      WHERE held.owner_id = waiting.owner_id AND held.status = 'processing' AND held.slot = slot.slot
    )
    LIMIT 1
  ) place
  WHERE NOT EXISTS (SELECT FROM abandoned) AND waiting.owner_id <> ALL ($5::text[])
  ORDER BY coalesce(share.virtual_time, 0), waiting.owner_id
),
next AS (
  SELECT oldest.id, owners.slot FROM owners CROSS JOIN LATERAL (
    SELECT id FROM image_tasks
    WHERE owner_id = owners.owner_id AND status = 'queued' AND NOT sandbox
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
    ticket = $1, slot = due.slot, not_before = NULL, deaths = deaths + due.retaken::integer,
    charged_seconds = CASE WHEN due.retaken THEN charged_seconds ELSE ${taskCost} END
  FROM due WHERE task.id = due.id
  RETURNING task.id, task.owner_id, CASE WHEN due.retaken THEN 0 ELSE task.charged_seconds END AS charge
),
charged AS (
  INSERT INTO fair_shares (owner_id, virtual_time) SELECT owner_id, charge FROM claimed
  ON CONFLICT (owner_id) DO UPDATE SET virtual_time = fair_shares.virtual_time + excluded.virtual_time
)
SELECT id, pg_notify($3, id) FROM claimed`;
