import type { ImageTask } from '@app/domain';

/** What decides which weights draw a task. */
export type WeightsOfTask = Pick<ImageTask, 'model' | 'finetuneId' | 'weightsScale'>;

/** The name of a task's weights for a claim: its model, its Fine-Tune, and the scale with which that is merged. */
export const weightsLabel = ({ model, finetuneId, weightsScale }: WeightsOfTask): string =>
  `${model} ${finetuneId ?? ''} ${weightsScale ?? ''}`;

const label = `model || ' ' || coalesce(finetune_id, '') || ' ' || coalesce(weights_scale::text, '')`;
const columns = `owner_id, model, created_at, ${label} AS weights`;

/**
 * The oldest queued task of each owner and model, for WITH RECURSIVE: one step down the index for each, however many
 * rows each has. The order is that of `image_tasks_queued_model_idx`, which contains only queued rows.
 */
export const queueHeads = (sandbox: boolean): string => {
  const isQueued = `status = 'queued' AND ${sandbox ? '' : 'NOT '}sandbox`;
  return `queue_heads (owner_id, model, created_at, weights) AS (
  (SELECT ${columns} FROM image_tasks WHERE ${isQueued} ORDER BY owner_id, model, created_at, id LIMIT 1)
  UNION ALL
  SELECT next.* FROM queue_heads CROSS JOIN LATERAL (
    SELECT ${columns} FROM image_tasks
    WHERE ${isQueued} AND (owner_id, model) > (queue_heads.owner_id, queue_heads.model)
    ORDER BY owner_id, model, created_at, id LIMIT 1
  ) next
)`;
};
