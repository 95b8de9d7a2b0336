/** The name of a task's weights for a claim: its model and its Fine-Tune. */
export const weightsLabel = (model: string, finetuneId: string | null): string => `${model} ${finetuneId ?? ''}`;

const columns = `owner_id, model, created_at, model || ' ' || coalesce(finetune_id, '') AS weights`;

/**
 * The oldest queued task of each owner and model, for WITH RECURSIVE: one step down the index for each, however many
 * rows each has. The order is that of `image_tasks_queued_model_idx`, which contains only queued rows.
 */
export const queueHeads = `queue_heads (owner_id, model, created_at, weights) AS (
  (SELECT ${columns} FROM image_tasks WHERE status = 'queued' AND NOT sandbox ORDER BY owner_id, model, created_at, id LIMIT 1)
  UNION ALL
  SELECT next.* FROM queue_heads CROSS JOIN LATERAL (
    SELECT ${columns} FROM image_tasks
    WHERE status = 'queued' AND NOT sandbox AND (owner_id, model) > (queue_heads.owner_id, queue_heads.model)
    ORDER BY owner_id, model, created_at, id LIMIT 1
  ) next
)`;
