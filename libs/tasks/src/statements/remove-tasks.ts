/**
 * Deletes tasks with the rows of their pictures, and subtracts these from the count. It uses an insert,
 * because an update would not see a count that was first inserted by a settlement for which the deletion
 * waited. Parameter: the ids.
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
