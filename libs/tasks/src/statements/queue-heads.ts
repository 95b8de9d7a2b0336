import type { TaskQueue } from '@app/domain';

/**
 * The oldest task of each owner and model in a queue, for WITH RECURSIVE: one step down the index for each, however many
 * rows each has. The order is that of `tasks_queued_model_idx`, which contains only queued rows.
 */
export const queueHeads = (queue: TaskQueue, sandbox: boolean): string => {
  const isQueued = `status = 'queued' AND ${sandbox ? '' : 'NOT '}sandbox AND queue = '${queue}'`;
  return `queue_heads (owner_id, model, created_at) AS (
  (SELECT owner_id, model, created_at FROM tasks WHERE ${isQueued} ORDER BY owner_id, model, created_at, id LIMIT 1)
  UNION ALL
  SELECT next.* FROM queue_heads CROSS JOIN LATERAL (
    SELECT owner_id, model, created_at FROM tasks
    WHERE ${isQueued} AND (owner_id, model) > (queue_heads.owner_id, queue_heads.model)
    ORDER BY owner_id, model, created_at, id LIMIT 1
  ) next
)`;
};
