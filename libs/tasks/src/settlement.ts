import type { TerminatedStatus } from '@app/domain';
import { Image, ImageTask } from '@app/domain';
import type { JobTransaction, Transactions } from '@app/queue';
import { In } from 'typeorm';
import { announce, changeChannel, stopChannel } from './channels';
import { correctCharge } from './fair-queue';
import type { Attempt, FoundTask } from './locked-task';
import { isHeld, lockFound, lockTask } from './locked-task';
import { insertDeliveries } from './webhook-deliveries';
import { addStored } from './storage-use';
import { keepThumbnail, lockPrompt } from './thumbnails';
import { recordUsage } from './usage';

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

/**
 * @returns whether this attempt has settled the task. It may have before: when the answer to its commit was lost and it
 * asks again, the task has succeeded all the same.
 */
export function settle(transactions: Transactions, task: Attempt, settlement: Settlement): Promise<boolean> {
  return transactions.run(async (transaction) => {
    const { manager } = transaction;
    const { status, images = [], computeSeconds = 0 } = settlement;
    const thumbnail = images.at(0)?.thumbnail;
    if (thumbnail) await lockPrompt(manager, task.id);
    const row = await lockTask(manager, task.id);
    if (!isHeld(row, task)) return hasSucceeded(row, task) && status === 'succeeded';
    await terminate(transaction, [row], settlement);
    const rows = images.map((image) => ({ ...image, taskId: task.id }));
    if (rows.length > 0) await manager.insert(Image, rows);
    if (thumbnail) await keepThumbnail(manager, task.id, thumbnail.storageKey);
    if (status === 'succeeded' && !row.sandbox) await recordUsage(manager, row, images.length, computeSeconds);
    await addStored(manager, row.ownerId, { pictureBytes: bytesOf(settlement) });
    return true;
  });
}

/** Fails a task that lost its worker. False if it has changed since it was found, as when its worker is back. */
export function failFound(transactions: Transactions, found: FoundTask, error: string): Promise<boolean> {
  return transactions.run(async (transaction) => {
    const row = await lockFound(transaction.manager, found);
    if (row) await terminate(transaction, [row], { status: 'failed', error });
    return row !== undefined;
  });
}

/** Only the attempt that holds a task lets it succeed. */
function hasSucceeded(row: ImageTask | null, { attempt }: Attempt): boolean {
  return row?.status === 'succeeded' && row.attempt === attempt;
}

/**
 * Terminates open tasks that the transaction has locked, all in the same way: charge, status, message
 * and webhook deliveries.
 */
export async function terminate(
  transaction: JobTransaction,
  rows: readonly Pick<ImageTask, 'id' | 'kind' | 'status'>[],
  settlement: Settlement,
): Promise<void> {
  const { manager } = transaction;
  const ids = rows.map(({ id }) => id);
  for (const { id, status } of rows)
    if (status === 'processing') await correctCharge(manager, id, settlement.computeSeconds);
  await manager.update(
    ImageTask,
    { id: In(ids) },
    {
      status: settlement.status,
      error: settlement.error ?? null,
      upscaler: settlement.upscaler ?? null,
      ...settlement.served,
      computeSeconds: settlement.computeSeconds ?? null,
      pictureBytes: bytesOf(settlement),
      completedAt: () => `greatest(date_trunc('milliseconds', clock_timestamp()), created_at)`,
    },
  );
  // A worker that settles its task has stopped drawing it; one whose task is canceled must be told to stop.
  await announce(manager, settlement.status === 'canceled' ? [changeChannel, stopChannel] : [changeChannel], ids);
  await insertDeliveries(transaction.manager, rows);
}

function bytesOf({ images = [] }: Settlement): number {
  return images.reduce((sum, { bytes, thumbnail }) => sum + bytes + (thumbnail?.bytes ?? 0), 0);
}
