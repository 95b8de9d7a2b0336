import { Drawing, type DrawingTask, Task } from '@app/domain';
import type { EntityManager } from 'typeorm';
import { lockTask, type Settlement } from './settlement';
import { finetunesOf, recordUsage, withFiltered } from './usage';

/** A task that its worker has lost, with the Fine-Tune of a drawing. */
export type LostTask = Task & Partial<Pick<DrawingTask, 'finetuneId' | 'inputs'>>;

/**
 * Charges what an attempt had used when its owner canceled or deleted its task. If another worker has the task,
 * nothing: that is no fault of its owner.
 */
export async function chargeLost(manager: EntityManager, task: LostTask, computeSeconds: number): Promise<void> {
  const row = await lockTask(manager, task.id);
  if (row && (row.status !== 'canceled' || row.attempt !== task.attempt)) return;
  if (row) await manager.update(Task, { id: task.id }, { computeSeconds: (row.computeSeconds ?? 0) + computeSeconds });
  const { finetuneId = null, inputs = null } = task;
  const used = task.kind === 'training' ? { finetuneId: task.id } : finetunesOf({ finetuneId, inputs });
  // Whoever deleted it may have erased its user.
  const endUser = row && task.endUser;
  await recordUsage(manager, { ...task, ...used, endUser }, { computeSeconds });
}

/** Charges a drawing that could not be stored, or of which all pictures are filtered: it was drawn all the same. */
export async function chargeFailed(
  manager: EntityManager,
  task: Task,
  { computeSeconds = 0, filtered = 0, flaggedBy = [] }: Pick<Settlement, 'computeSeconds' | 'filtered' | 'flaggedBy'>,
): Promise<void> {
  if (filtered > 0) await manager.update(Drawing, { id: task.id }, { filtered, flaggedBy: [...flaggedBy] });
  if (task.sandbox || task.kind === 'training' || computeSeconds === 0) return;
  const drawing = await manager.findOneByOrFail(Drawing, { id: task.id });
  await recordUsage(manager, { ...task, ...finetunesOf(drawing) }, withFiltered({ computeSeconds }, drawing, filtered));
}
