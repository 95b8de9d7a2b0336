import { aspectRatios, sizeOf } from '@app/domain';
import type { EntityManager } from 'typeorm';
import { changeChannel } from './channels';

/** What runs one statement. */
type Queryable = Pick<EntityManager, 'query'>;

/** Compute seconds of one step of a square picture on a usual GPU. What a task really took replaces the estimate when it ends. */
const secondsPerStep = 0.05;
/** What the text encoder and the decoder take, and the enlarging to high resolution, in steps. */
const fixedSteps = 4;
const enlargingSteps = 60;
/** What each chunk of the prompt after the first adds to a step, and what its encoding takes, as parts of a step; measured with the bundled model. */
const stepShareOfChunk = 0.05;
const stepsPerChunk = 0.03;

const areaOf = (ratio: (typeof aspectRatios)[number]): number => sizeOf[ratio].width * sizeOf[ratio].height;
const relativeArea = aspectRatios.map((ratio) => `WHEN '${ratio}' THEN ${areaOf(ratio) / areaOf('square')}`).join(' ');

/** Chunks of the prompt after its first, in SQL. */
const moreChunks = `(coalesce(task.prompt_chunks, 1) - 1)`;

/** Estimated compute seconds of a row of `image_tasks`, in SQL. */
const cost = `${secondsPerStep} * (${stepsPerChunk} * ${moreChunks}
  + task.num_images * CASE task.aspect_ratio ${relativeArea} ELSE 1 END
  * (task.steps * (1 + ${stepShareOfChunk} * ${moreChunks}) + ${fixedSteps}
    + CASE WHEN task.high_resolution THEN ${enlargingSteps} ELSE 0 END))`;

/**
 * Factor of the silence after which a task is taken from its worker, in SQL: twice as long after the second death, and so on.
 * One that takes its workers down is so kept apart from all others, and one that was only near is not given up for it.
 */
export const silenceFactor = 'power(2, greatest(0, deaths - 1))';

/**
 * The owners with a queued task, one step down the index for each, however many rows each has. The order is that of
 * `image_tasks_queued_idx`, which has no row of another status to pass over. The database's function `insert_tasks` has the same.
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
 * Claims a task whose worker has gone silent, which has waited and been paid for already; else the oldest task of the owner who has had the least compute time: deficit round robin with a quantum that goes to
 * nothing, which is start-time fair queuing (Goyal, Vin, Cheng 1996). Each owner's virtual time is what it was charged; the
 * charge is the estimate until the task ends. One statement, so that a worker that freezes holds no lock. Rows that another
 * claim has in hand are skipped. A key's cap is the number of its slots, and a unique index keeps two tasks out of one.
 * Parameters: the ticket, the cap of keys without their own (0: none), the channel of changes, the milliseconds of silence.
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
  WHERE NOT EXISTS (SELECT FROM abandoned)
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
  SELECT id, slot, true AS again FROM abandoned UNION ALL SELECT id, slot, false FROM next
),
claimed AS (
  UPDATE image_tasks task SET
    status = 'processing', attempt = attempt + 1, started_at = coalesce(started_at, now()), heartbeat_at = now(),
    ticket = $1, slot = due.slot, not_before = NULL, deaths = deaths + due.again::integer,
    charged_seconds = CASE WHEN due.again THEN charged_seconds ELSE ${cost} END
  FROM due WHERE task.id = due.id
  RETURNING task.id, task.owner_id, CASE WHEN due.again THEN 0 ELSE task.charged_seconds END AS charge
),
charged AS (
  INSERT INTO fair_shares (owner_id, virtual_time) SELECT owner_id, charge FROM claimed
  ON CONFLICT (owner_id) DO UPDATE SET virtual_time = fair_shares.virtual_time + excluded.virtual_time
)
SELECT id, pg_notify($3, id) FROM claimed`;

/** How often a claim is tried again whose slot another worker took at the same moment. */
const claimTries = 5;
const uniqueViolation = '23505';

/** @returns the id of the task that was claimed; undefined when none is due. */
export async function claimDue(
  database: Queryable,
  ticket: string,
  { maxConcurrent, silenceMs }: { maxConcurrent: number; silenceMs: number },
): Promise<string | undefined> {
  for (let left = claimTries; ; left--)
    try {
      const parameters = [ticket, maxConcurrent, changeChannel, silenceMs];
      const [claimed] = await database.query<{ id: string }[]>(claimDueStatement, parameters);
      return claimed?.id;
    } catch (error) {
      if ((error as { code?: string }).code !== uniqueViolation || left === 0) throw error;
    }
}

/** How many tasks wait that no worker may take now, counted up to `most`. */
export async function countWaiting(database: Queryable, most: number): Promise<number> {
  const [{ count }] = await database.query<{ count: number }[]>(
    `SELECT count(*)::integer AS count
     FROM (SELECT 1 FROM image_tasks WHERE status = 'queued' AND NOT sandbox LIMIT $1) counted`,
    [most],
  );
  return count;
}

/**
 * How many tasks are likely to be drawn before each of these: those of its owner that are older, and as many of every other
 * owner, as if all were equally dear; one more of an owner whose turn is before. Two statements that pass over what is queued
 * once, however many tasks are asked for, and then as many additions as there are owners for each.
 * @returns a position for each of them that is queued for an engine.
 */
export async function queuePositions(database: Queryable, taskIds: readonly string[]): Promise<Map<string, number>> {
  const owners = await database.query<{ id: string; count: number }[]>(
    `SELECT task.owner_id AS id, count(*)::integer AS count
     FROM image_tasks task LEFT JOIN fair_shares share ON share.owner_id = task.owner_id
     WHERE task.status = 'queued' AND NOT task.sandbox
     GROUP BY task.owner_id, share.virtual_time
     ORDER BY coalesce(share.virtual_time, 0), task.owner_id`,
  );
  const tasks = await database.query<{ id: string; owner: string; older: number }[]>(
    `SELECT id, owner_id AS owner, older FROM (
       SELECT id, owner_id, (row_number() OVER (PARTITION BY owner_id ORDER BY created_at, id) - 1)::integer AS older
       FROM image_tasks
       WHERE status = 'queued' AND NOT sandbox
         AND owner_id IN (SELECT owner_id FROM image_tasks WHERE id = ANY ($1))
     ) ranked
     WHERE id = ANY ($1)`,
    [taskIds],
  );
  const turns = new Map(owners.map(({ id }, turn) => [id, turn]));
  return new Map(
    tasks.map(({ id, owner, older }) => {
      const own = turns.get(owner) ?? owners.length;
      const others = owners.map(({ count }, turn) =>
        turn === own ? 0 : Math.min(count, older + (turn < own ? 1 : 0)),
      );
      return [id, others.reduce((sum, count) => sum + count, older)];
    }),
  );
}

/**
 * Replaces the estimate that a claimed task was charged by what it took.
 * @param seconds of compute; undefined where nobody measured: the time since it started, and at most the estimate.
 */
export async function correctCharge(database: Queryable, taskId: string, seconds: number | undefined): Promise<void> {
  await database.query(
    `UPDATE fair_shares share SET virtual_time = share.virtual_time - task.charged_seconds
       + coalesce($2, least(task.charged_seconds, extract(epoch FROM clock_timestamp() - task.started_at)))
     FROM image_tasks task
     WHERE task.id = $1 AND task.charged_seconds > 0 AND share.owner_id = task.owner_id`,
    [taskId, seconds ?? null],
  );
}
