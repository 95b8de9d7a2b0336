import { type Image, Task, type TerminatedStatus } from '@app/domain';
import { type EntityManager, In } from 'typeorm';
import { announce, changeChannel, stopChannel } from './channels';
import { correctCharge } from './fair-queue';
import { insertDeliveries } from './webhook-deliveries';

/** Which weights draw a task, and in how many chunks its prompt was encoded. */
export interface Served {
  servedBy: string;
  promptChunks?: number;
}

/** A drawn picture; the first one of a Prompt has a thumbnail. */
export interface DrawnPicture extends Omit<Image, 'task' | 'taskId'> {
  thumbnail?: { storageKey: string; bytes: number };
}

/** How a task ended, and its results. */
export interface Settlement {
  status: TerminatedStatus;
  error?: string | null;
  upscaler?: string | null;
  /** Written when drawing began; here again, because that write may have failed. */
  served?: Served;
  computeSeconds?: number;
  images?: readonly DrawnPicture[];
}

/** The row as it is now, locked until the transaction ends. */
export function lockTask(manager: EntityManager, id: string): Promise<Task | null> {
  return manager.findOne(Task, { where: { id }, lock: { mode: 'pessimistic_write' } });
}

/** Puts a task that the transaction has locked back into the queue. */
export async function putBack(
  manager: EntityManager,
  { id }: Task,
  counts: Partial<Pick<Task, 'deaths' | 'failures'>>,
  delayMs: number,
): Promise<void> {
  await manager.update(
    Task,
    { id },
    {
      status: 'queued',
      ...counts,
      drawnAlone: false,
      heartbeatAt: () => 'NULL',
      place: () => 'NULL',
      notBefore: () => `now() + ${delayMs} * interval '1 ms'`,
    },
  );
  // The next claim charges it again.
  await correctCharge(manager, id, 0);
  await announce(manager, [changeChannel], [id]);
}

/**
 * Terminates open tasks that the transaction has locked, all in the same way: charge, status, message
 * and webhook deliveries.
 */
export async function terminate(
  manager: EntityManager,
  rows: readonly Pick<Task, 'id' | 'kind' | 'status'>[],
  settlement: Settlement,
): Promise<void> {
  const ids = rows.map(({ id }) => id);
  for (const { id, status } of rows)
    if (status === 'processing') await correctCharge(manager, id, settlement.computeSeconds);
  await manager.update(
    Task,
    { id: In(ids) },
    {
      status: settlement.status,
      error: settlement.error ?? null,
      computeSeconds: settlement.computeSeconds ?? null,
      pictureBytes: bytesOf(settlement),
      completedAt: () => `greatest(date_trunc('milliseconds', clock_timestamp()), created_at)`,
    },
  );
  // A worker that settles its task has stopped drawing it; one whose task is canceled must be told to stop.
  await announce(manager, settlement.status === 'canceled' ? [changeChannel, stopChannel] : [changeChannel], ids);
  await insertDeliveries(manager, rows);
}

export function bytesOf({ images = [] }: Settlement): number {
  return images.reduce((sum, { bytes, thumbnail }) => sum + bytes + (thumbnail?.bytes ?? 0), 0);
}
