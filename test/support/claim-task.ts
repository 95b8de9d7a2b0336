import type { DrawingTask } from '@app/domain';
import { changeChannel } from '@app/tasks';
import type { EntityManager } from 'typeorm';
import { drawingOf } from './drawing-rows';

/** Claims one given task, whosever turn it is. */
export async function claimTask(manager: EntityManager, id: string): Promise<DrawingTask> {
  const [[claimed]] = await manager.query<[{ id: string }[], number]>(
    `UPDATE tasks SET status = 'processing', attempt = attempt + 1, started_at = now(), heartbeat_at = now()
     WHERE id = $1 AND status = 'queued' RETURNING id, pg_notify($2, id)`,
    [id, changeChannel],
  );
  if (!claimed) throw new Error(`The task ${id} is not queued.`);
  return drawingOf(manager, id);
}
