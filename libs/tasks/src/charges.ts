import { Drawing, type DrawingTask, Task } from '@app/domain';
import type { EntityManager } from 'typeorm';
import { lockTask } from './settlement';
import { recordUsage } from './usage';

/** A task that its worker has lost, with the Fine-Tune of a drawing. */
export type LostTask = Task & Partial<Pick<DrawingTask, 'finetuneId'>>;

/**
 * Charges what an attempt had used when its owner canceled or deleted its task. If another worker has the task,
 * nothing: that is no fault of its owner.
 */
export async function chargeLost(manager: EntityManager, task: LostTask, computeSeconds: number): Promise<void> {
  const row = await lockTask(manager, task.id);
  if (row && (row.status !== 'canceled' || row.attempt !== task.attempt)) return;
  if (row) await manager.update(Task, { id: task.id }, { computeSeconds: (row.computeSeconds ?? 0) + computeSeconds });
  const finetuneId = task.kind === 'training' ? task.id : (task.finetuneId ?? null);
  await recordUsage(manager, { ...task, finetuneId, steps: 0 }, 0, computeSeconds);
}

/** Charges a drawing that could not be stored: it was drawn all the same. */
export async function chargeFailed(manager: EntityManager, task: Task, computeSeconds = 0): Promise<void> {
  if (task.sandbox || task.kind === 'training' || computeSeconds === 0) return;
  const { finetuneId } = await manager.findOneByOrFail(Drawing, { id: task.id });
  await recordUsage(manager, { ...task, finetuneId, steps: 0 }, 0, computeSeconds);
}
