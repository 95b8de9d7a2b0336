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

/**
 * Compares the counts that were not compared for longest with the rows, a few at a time. A caller's row is locked before its files are
 * counted: whoever has moved it is counted, and whoever is about to waits and moves the new count.
 * @returns how many were wrong.
 */
export async function recountStored(
  transaction: <T>(work: (database: Queryable) => Promise<T>) => Promise<T>,
  database: Queryable,
  { most, agoHours }: { most: number; agoHours: number },
): Promise<number> {
  const due = await database.query<{ owner_id: string }[]>(
    `SELECT owner_id FROM storage_use WHERE counted_at < now() - $1 * interval '1 hour' ORDER BY counted_at LIMIT $2`,
    [agoHours, most],
  );
  let wrong = 0;
  for (const { owner_id: ownerId } of due)
    wrong += await transaction(async (manager) => {
      const [held] = await manager.query<Record<'picture_bytes' | 'weight_bytes', string>[]>(
        'SELECT picture_bytes, weight_bytes FROM storage_use WHERE owner_id = $1 FOR UPDATE SKIP LOCKED',
        [ownerId],
      );
      if (!held) return 0;
      const [found] = await manager.query<Record<'picture_bytes' | 'weight_bytes', string>[]>(
        `SELECT
           (SELECT coalesce(sum(picture_bytes), 0) FROM image_tasks WHERE owner_id = $1) AS picture_bytes,
           (SELECT coalesce(sum(weights_bytes), 0) FROM finetunes WHERE owner_id = $1) AS weight_bytes`,
        [ownerId],
      );
      await manager.query(
        'UPDATE storage_use SET picture_bytes = $2, weight_bytes = $3, counted_at = now() WHERE owner_id = $1',
        [ownerId, found.picture_bytes, found.weight_bytes],
      );
      return Number(held.picture_bytes !== found.picture_bytes || held.weight_bytes !== found.weight_bytes);
    });
  return wrong;
}
