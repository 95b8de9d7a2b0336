/**
 * The oldest queued task of each owner and model, for WITH RECURSIVE: one step down the index for each, however many
 * rows each has. The order is that of `tasks_queued_model_idx`, which contains only queued rows.
 */
export const queueHeads = (sandbox: boolean): string => {
  const isQueued = `status = 'queued' AND ${sandbox ? '' : 'NOT '}sandbox`;
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
