import type { Task } from '@app/domain';
import { editsFolder } from '../attempt-folder';

/** Rows that `removeStatement` deleted: tasks, and the keys of uploads. */
export interface Removed {
  removed: Pick<Task, 'id' | 'attempt' | 'status'>[];
  uploads: string[];
}

const ofEdits = `storage_key LIKE '${editsFolder}/%'`;

/**
 * Locks the uploads of edits that go with their task against new uses: the deletion is the next statement and sees all
 * uses. The task is locked first, as everywhere. Parameter: the ids.
 */
export const lockEditsStatement = `
SELECT FROM tasks task JOIN picture_uses picture ON task_id = task.id JOIN uploaded_pictures upload ON upload.id = upload_id
WHERE task.id = ANY($1) AND ${ofEdits} ORDER BY upload.id FOR UPDATE OF task, upload`;

/** Trainings that are deleted before their end, which would have counted their compute. Parameter: the ids. */
export const openTrainingsStatement = `
SELECT task.id AS "finetuneId", task.owner_id AS "ownerId", task.model, task.end_user AS "endUser",
  training.compute_seconds AS "computeSeconds"
FROM tasks task JOIN trainings training ON training.id = task.id
WHERE task.id = ANY($1) AND task.status IN ('queued', 'processing') AND NOT task.sandbox AND training.compute_seconds > 0
ORDER BY task.owner_id, task.model, task.id`;

/**
 * Deletes tasks with the rows of their pictures, and subtracts these from the count. It uses an insert: an update would
 * not see a count first inserted by a settlement for which the deletion waited. Parameter: the ids.
 */
export const removeStatement = `
WITH removed AS (
  DELETE FROM tasks WHERE id = ANY($1) RETURNING id, owner_id, attempt, status, picture_bytes, reserved_bytes, record_bytes
),
dropped AS (
  DELETE FROM uploaded_pictures upload WHERE ${ofEdits}
    AND id IN (SELECT upload_id FROM picture_uses WHERE task_id = ANY($1))
    AND NOT EXISTS (SELECT FROM picture_uses WHERE upload_id = upload.id AND task_id <> ALL($1))
  RETURNING owner_id, storage_key, bytes
),
freed AS (
  SELECT owner_id, picture_bytes AS pictures, reserved_bytes AS reserved, record_bytes AS records FROM removed
  UNION ALL SELECT owner_id, bytes, 0, 0 FROM dropped
),
counted AS (
  INSERT INTO storage_use AS stored (owner_id, picture_bytes, reserved_bytes, record_bytes)
  SELECT owner_id, -sum(pictures)::bigint, -sum(reserved)::bigint, -sum(records)::bigint FROM freed
  GROUP BY owner_id HAVING sum(pictures) + sum(reserved) + sum(records) > 0 ORDER BY owner_id
  ON CONFLICT (owner_id) DO UPDATE SET picture_bytes = stored.picture_bytes + excluded.picture_bytes,
    reserved_bytes = stored.reserved_bytes + excluded.reserved_bytes, record_bytes = stored.record_bytes + excluded.record_bytes
)
SELECT
  (SELECT coalesce(json_agg(json_build_object('id', id, 'attempt', attempt, 'status', status)), '[]') FROM removed) AS removed,
  (SELECT coalesce(json_agg(storage_key), '[]') FROM dropped) AS uploads`;
