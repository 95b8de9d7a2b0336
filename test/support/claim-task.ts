import { ImageTask } from '@app/domain';
import { changeChannel } from '@app/tasks';
import type { EntityManager } from 'typeorm';

/** Claims one given task, whoever's turn it is. */
export async function claimTask(manager: EntityManager, id: string): Promise<ImageTask> {
  const [[claimed]] = await manager.query<[{ id: string }[], number]>(
    `UPDATE image_tasks SET status = 'processing', attempt = attempt + 1, started_at = now(), heartbeat_at = now()
     WHERE id = $1 AND status = 'queued' RETURNING id, pg_notify($2, id)`,
    [id, changeChannel],
  );
  if (!claimed) throw new Error(`The task ${id} is not queued.`);
  return manager.findOneByOrFail(ImageTask, { id });
}
