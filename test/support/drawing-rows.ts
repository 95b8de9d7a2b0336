import { Drawing, type DrawingTask, Task } from '@app/domain';
import { costOf, findDrawing, type NewTask } from '@app/tasks';
import type { EntityManager } from 'typeorm';
import { newTask } from './new-task';

/** Values of a task and of its drawing. */
export type DrawingValues = Partial<Omit<DrawingTask, 'images'>>;

/** A task with its drawing, as the intake writes it; any field may be set. */
export function drawingTask(ownerId: string, values: DrawingValues = {}): DrawingTask {
  const row = { ...newTask(ownerId), weightsScale: null, status: 'queued' as const, ...(values as Partial<NewTask>) };
  return Object.assign(new Task(), { cost: costOf(row), ...row }) as unknown as DrawingTask;
}

/** Inserts it, without a record. */
export async function insertDrawing(manager: EntityManager, task: DrawingTask): Promise<void> {
  await manager.insert(Task, task);
  await manager.insert(Drawing, task);
}

/** A stored task with its drawing. */
export async function drawingOf(manager: EntityManager, id: string): Promise<DrawingTask> {
  const found = await findDrawing(manager, { id });
  if (!found) throw new Error(`There is no drawing ${id}.`);
  return found;
}
