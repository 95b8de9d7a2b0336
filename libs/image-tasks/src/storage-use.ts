import type { DataSource } from 'typeorm';

/** What runs a statement: an entity manager or a data source. */
interface Queryable {
  query<T = unknown>(statement: string, parameters?: unknown[]): Promise<T>;
}

/** Bytes that a caller's files have come to take, or take no more where they are negative. */
export interface StoredChange {
  pictureBytes?: number;
  weightBytes?: number;
}

/** Moves a caller's count, in the transaction that adds or removes the rows of the files, and last in it: its row is held to the end. */
export async function addStored(
  database: Queryable,
  ownerId: string,
  { pictureBytes = 0, weightBytes = 0 }: StoredChange,
): Promise<void> {
  if (pictureBytes === 0 && weightBytes === 0) return;
  await database.query(
    `INSERT INTO storage_use AS stored (owner_id, picture_bytes, weight_bytes) VALUES ($1, $2, $3)
     ON CONFLICT (owner_id) DO UPDATE SET
       picture_bytes = stored.picture_bytes + excluded.picture_bytes,
       weight_bytes = stored.weight_bytes + excluded.weight_bytes`,
    [ownerId, pictureBytes, weightBytes],
  );
}

/**
 * Deletes tasks with their pictures' rows, and counts the pictures as gone. An insert, for an update would not see the row that a
 * settlement, which the deletion has waited for, was the first to make. Parameter: the ids.
 */
export const removeTasksStatement = `
WITH removed AS (
  DELETE FROM image_tasks WHERE id = ANY($1) RETURNING id, owner_id, attempt, status, picture_bytes
),
counted AS (
  INSERT INTO storage_use AS stored (owner_id, picture_bytes)
  SELECT owner_id, -sum(picture_bytes)::bigint FROM removed GROUP BY owner_id HAVING sum(picture_bytes) > 0 ORDER BY owner_id
  ON CONFLICT (owner_id) DO UPDATE SET picture_bytes = stored.picture_bytes + excluded.picture_bytes
)
SELECT id, attempt, status FROM removed`;

/** Rows of one statement: no owner's tasks are read or written all at once. */
const pageSize = 2_000;

interface Page {
  bytes: string;
  /** Succeeded tasks whose pictures nobody has counted: those of a version before. */
  uncounted: string[] | null;
  last_at: string | null;
  last_id: string | null;
}

/** A page of what an owner's tasks take, along `image_tasks_completed_idx`. Parameters: the owner, and where the page before ended. */
const pageStatement = `
SELECT coalesce(sum(picture_bytes), 0) AS bytes, array_agg(id) FILTER (WHERE status = 'succeeded' AND picture_bytes = 0) AS uncounted,
  max(completed_at)::text AS last_at, (array_agg(id ORDER BY completed_at DESC, id DESC))[1] AS last_id
FROM (
  SELECT id, status, picture_bytes, completed_at FROM image_tasks
  WHERE owner_id = $1 AND completed_at IS NOT NULL AND completed_at >= $2 AND (completed_at, id) > ($2::timestamptz, $3)
  ORDER BY completed_at, id LIMIT ${pageSize}
) page`;

/** Counts pictures that a version before has written. A task that somebody else has in hand is counted the next time. Parameter: the ids. */
const countPicturesStatement = `
WITH uncounted AS (
  SELECT id FROM image_tasks WHERE id = ANY($1) AND picture_bytes = 0 ORDER BY id FOR UPDATE SKIP LOCKED
),
found AS (
  SELECT task_id, sum(bytes) AS bytes FROM images WHERE task_id IN (SELECT id FROM uncounted) GROUP BY task_id
),
counted AS (
  UPDATE image_tasks task SET picture_bytes = found.bytes FROM found WHERE task.id = found.task_id
  RETURNING task.owner_id, task.picture_bytes
)
INSERT INTO storage_use AS stored (owner_id, picture_bytes)
SELECT owner_id, sum(picture_bytes) FROM counted GROUP BY owner_id
ON CONFLICT (owner_id) DO UPDATE SET picture_bytes = stored.picture_bytes + excluded.picture_bytes`;

/** Parameters: the owner, what is missing of pictures and of weights, and when the count was last compared. */
const correctStatement = `
INSERT INTO storage_use AS stored (owner_id, picture_bytes, weight_bytes, counted_at) VALUES ($1, $2, $3, now())
ON CONFLICT (owner_id) DO UPDATE SET
  picture_bytes = stored.picture_bytes + excluded.picture_bytes,
  weight_bytes = stored.weight_bytes + excluded.weight_bytes,
  counted_at = excluded.counted_at
WHERE stored.counted_at IS NOT DISTINCT FROM $4::timestamptz`;

/**
 * Compares the counts that were not compared for longest with the rows, a few at a time, and counts the pictures of a version before.
 * One owner's failure is thrown when the others are done.
 * @returns how many were compared, and how many of these were wrong.
 */
export async function recountStored(
  database: Pick<DataSource, 'query' | 'transaction'>,
  { most, agoHours, signal }: { most: number; agoHours: number; signal?: AbortSignal },
): Promise<{ compared: number; wrong: number }> {
  const due = await database.query<{ id: string }[]>(
    `SELECT caller.id FROM api_keys caller LEFT JOIN storage_use stored ON stored.owner_id = caller.id
     WHERE stored.counted_at IS NULL OR stored.counted_at < now() - $1 * interval '1 hour'
     ORDER BY stored.counted_at NULLS FIRST LIMIT $2`,
    [agoHours, most],
  );
  let wrong = 0;
  const failures: unknown[] = [];
  for (const { id } of due) {
    if (signal?.aborted) break;
    await recount(database, id, signal).then(
      (wasWrong) => (wrong += Number(wasWrong)),
      (error: unknown) => failures.push(error),
    );
  }
  if (failures.length > 0) throw failures[0];
  return { compared: due.length, wrong };
}

/**
 * All that is read is of one moment, at which count and rows were moved alike: what lies between them is the error, however much either
 * has moved since. So nothing is locked while files are counted.
 */
async function recount(
  database: Pick<DataSource, 'query' | 'transaction'>,
  ownerId: string,
  signal?: AbortSignal,
): Promise<boolean> {
  const seen = await database.transaction('REPEATABLE READ', async (manager) => {
    const [{ counted_at: countedAt, ...held }] = await manager.query<
      [{ picture_bytes: string; weight_bytes: string; files: string; counted_at: string | null }]
    >(
      `SELECT coalesce(picture_bytes, 0) AS picture_bytes, coalesce(weight_bytes, 0) AS weight_bytes, counted_at::text,
         (SELECT coalesce(sum(weights_bytes), 0) FROM finetunes WHERE owner_id = $1) AS files
       FROM (SELECT) one LEFT JOIN storage_use ON owner_id = $1`,
      [ownerId],
    );
    let pictures = -BigInt(held.picture_bytes);
    for (let last = ['-infinity', '']; ;) {
      const [page] = await manager.query<[Page]>(pageStatement, [ownerId, ...last]);
      pictures += BigInt(page.bytes);
      // On a connection of its own: it moves rows and count alike, and so not what lies between them.
      if (page.uncounted) await database.query(countPicturesStatement, [page.uncounted]);
      if (page.last_at === null || page.last_id === null) break;
      signal?.throwIfAborted();
      last = [page.last_at, page.last_id];
    }
    return { pictures, weights: BigInt(held.files) - BigInt(held.weight_bytes), countedAt };
  });
  const missing = [String(seen.pictures), String(seen.weights)];
  await database.query(correctStatement, [ownerId, ...missing, seen.countedAt]);
  return missing.some((bytes) => bytes !== '0');
}
