import { waitsForWorker } from './queue-heads';

/** The owners who wait in each queue, in the order of their turns, and the number of tasks each has there. */
export const ownersByTurnStatement = `
SELECT task.queue, task.owner_id AS id, count(*)::integer AS count
FROM tasks task LEFT JOIN fair_shares share ON share.owner_id = task.owner_id
WHERE ${waitsForWorker('task')}
GROUP BY task.queue, task.owner_id, share.virtual_time
ORDER BY coalesce(share.virtual_time, 0), task.owner_id`;

/** For each task that waits for a worker, how many older ones of its owner are in its queue. Parameter: the ids. */
export const olderTasksStatement = `
SELECT id, queue, owner_id AS owner, older FROM (
  SELECT task.id, task.queue, task.owner_id,
    (row_number() OVER (PARTITION BY task.queue, task.owner_id ORDER BY task.created_at, task.id) - 1)::integer AS older
  FROM tasks task
  WHERE ${waitsForWorker('task')} AND task.owner_id IN (SELECT owner_id FROM tasks WHERE id = ANY ($1))
) ranked
WHERE id = ANY ($1)`;
