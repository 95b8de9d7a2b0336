import { ImageTask } from '@app/domain';
import type { EntityManager } from 'typeorm';

/** A task in the hands of one worker: each claim counts the attempt. */
export type Attempt = Pick<ImageTask, 'id' | 'attempt'>;

/** The row as it is now; it stays so until the transaction ends. */
export function lockTask(manager: EntityManager, id: string): Promise<ImageTask | null> {
  return manager.findOne(ImageTask, { where: { id }, lock: { mode: 'pessimistic_write' } });
}

/** The row, locked, if it is still in the hands of this worker; undefined when it was canceled, deleted or taken over. */
export async function lockAttempt(manager: EntityManager, { id, attempt }: Attempt): Promise<ImageTask | undefined> {
  const row = await lockTask(manager, id);
  return row?.status === 'processing' && row.attempt === attempt ? row : undefined;
}
