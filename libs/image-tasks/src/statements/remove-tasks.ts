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
