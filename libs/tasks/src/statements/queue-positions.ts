/** The owners who wait for an engine, in the order of their turns, and the number of tasks each has queued. */
export const ownersByTurnStatement = `
SELECT task.owner_id AS id, count(*)::integer AS count
FROM tasks task LEFT JOIN fair_shares share ON share.owner_id = task.owner_id
WHERE task.status = 'queued' AND NOT task.sandbox
GROUP BY task.owner_id, share.virtual_time
ORDER BY coalesce(share.virtual_time, 0), task.owner_id`;

/** For each task that is queued for an engine, the number of its owner's older ones. Parameter: the ids. */
export const olderTasksStatement = `
SELECT id, owner_id AS owner, older FROM (
  SELECT id, owner_id, (row_number() OVER (PARTITION BY owner_id ORDER BY created_at, id) - 1)::integer AS older
  FROM tasks
  WHERE status = 'queued' AND NOT sandbox
    AND owner_id IN (SELECT owner_id FROM tasks WHERE id = ANY ($1))
) ranked
WHERE id = ANY ($1)`;
