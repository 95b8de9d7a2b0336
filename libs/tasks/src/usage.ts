import type { DrawingTask } from '@app/domain';
import type { EntityManager } from 'typeorm';

/** Adds a task's pictures and compute seconds to its owner's usage of today. */
export async function recordUsage(
  manager: EntityManager,
  task: Pick<DrawingTask, 'ownerId' | 'model' | 'finetuneId' | 'steps'>,
  images: number,
  computeSeconds: number,
): Promise<void> {
  await manager.query(
    `INSERT INTO daily_usage (owner_id, day, model, finetune_id, images, steps, compute_seconds)
     VALUES ($1, (now() AT TIME ZONE 'UTC')::date, $2, $3, $4, $5, $6)
     ON CONFLICT (owner_id, day, model, finetune_id) DO UPDATE SET
       images = daily_usage.images + excluded.images,
       steps = daily_usage.steps + excluded.steps,
       compute_seconds = daily_usage.compute_seconds + excluded.compute_seconds`,
    [task.ownerId, task.model, task.finetuneId ?? '', images, images * task.steps, computeSeconds],
  );
}
