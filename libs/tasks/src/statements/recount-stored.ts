/**
 * The keys whose count is due to be compared, the longest ago first. Parameters: the hours between
 * comparisons, and how many keys.
 */
export const dueOwnersStatement = `
SELECT caller.id FROM api_keys caller LEFT JOIN storage_use stored ON stored.owner_id = caller.id
WHERE stored.counted_at IS NULL OR stored.counted_at < now() - $1 * interval '1 hour'
ORDER BY stored.counted_at NULLS FIRST LIMIT $2`;

/** An owner's stored count, and the size of its weights. Parameter: the owner. */
export const storedCountStatement = `
SELECT coalesce(picture_bytes, 0) AS picture_bytes, coalesce(weight_bytes, 0) AS weight_bytes, counted_at::text,
  (SELECT coalesce(sum(weights_bytes), 0) FROM finetunes WHERE owner_id = $1) AS files
FROM (SELECT) one LEFT JOIN storage_use ON owner_id = $1`;

/** Rows per statement: an owner's tasks are never read or written all at once. */
const pageSize = 2_000;

/**
 * A page of the sizes of an owner's tasks, along `image_tasks_completed_idx`. Parameters: the owner, and where
 * the previous page ended.
 */
export const pageStatement = `
SELECT coalesce(sum(picture_bytes), 0) AS bytes, array_agg(id) FILTER (WHERE status = 'succeeded' AND picture_bytes = 0) AS uncounted,
  max(completed_at)::text AS last_at, (array_agg(id ORDER BY completed_at DESC, id DESC))[1] AS last_id
FROM (
  SELECT id, status, picture_bytes, completed_at FROM image_tasks
  WHERE owner_id = $1 AND completed_at IS NOT NULL AND completed_at >= $2 AND (completed_at, id) > ($2::timestamptz, $3)
  ORDER BY completed_at, id LIMIT ${pageSize}
) page`;

/**
 * Counts pictures that an older version wrote. A task that another transaction has locked is counted the next
 * time. Parameter: the ids.
 */
export const countPicturesStatement = `
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

/** Parameters: the owner, the missing bytes of pictures and of weights, and when the count was last compared. */
export const correctStatement = `
INSERT INTO storage_use AS stored (owner_id, picture_bytes, weight_bytes, counted_at) VALUES ($1, $2, $3, now())
ON CONFLICT (owner_id) DO UPDATE SET
  picture_bytes = stored.picture_bytes + excluded.picture_bytes,
  weight_bytes = stored.weight_bytes + excluded.weight_bytes,
  counted_at = excluded.counted_at
WHERE stored.counted_at IS NOT DISTINCT FROM $4::timestamptz`;
