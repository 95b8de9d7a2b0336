import { ImageTask } from '@app/domain';
import type { EntityManager } from 'typeorm';

/** A task held by one worker, identified by the attempt of its claim. */
export type Attempt = Pick<ImageTask, 'id' | 'attempt'>;

/** A task as a sweeper found it. */
export type FoundTask = Attempt & Pick<ImageTask, 'enqueued' | 'status' | 'heartbeatAt'>;

/** The row as it is now, locked until the transaction ends. */
export function lockTask(manager: EntityManager, id: string): Promise<ImageTask | null> {
  return manager.findOne(ImageTask, { where: { id }, lock: { mode: 'pessimistic_write' } });
}

/** The locked row if this worker still holds the task; undefined if it was canceled, deleted or taken over. */
export async function lockAttempt(manager: EntityManager, { id, attempt }: Attempt): Promise<ImageTask | undefined> {
  const row = await lockTask(manager, id);
  return isHeld(row, { id, attempt }) ? row : undefined;
}

/** Whether the worker of an attempt still holds the task. */
export function isHeld(row: ImageTask | null, { attempt }: Attempt): row is ImageTask {
  return row?.status === 'processing' && row.attempt === attempt;
}

/** The locked row if it is as it was found; undefined if it has moved, or its worker has been heard again. */
export async function lockFound(manager: EntityManager, found: FoundTask): Promise<ImageTask | undefined> {
  const row = await lockTask(manager, found.id);
  const isSame =
    row?.status === found.status &&
    row.attempt === found.attempt &&
    row.enqueued === found.enqueued &&
    row.heartbeatAt?.getTime() === found.heartbeatAt?.getTime();
  return isSame ? row : undefined;
}
