import type { ImageTask } from '@app/domain';
import { changeChannel, stopChannel } from './channels';
import { correctCharge } from './fair-queue';
import { oweWebhooks } from './owed-webhooks';
import type { JobTransaction } from '@app/queue';

/** Tasks that one transaction cancels, and so holds locked for that moment. */
const batch = 100;

/** Which of an owner's tasks are canceled. */
export interface Cancelable {
  ownerId: string;
  /** Only those that were made before. */
  before?: Date;
  /** What another has locked, which may be canceling it too, is left out or waited for. */
  locked: 'left out' | 'waited for';
}

/**
 * Cancels a batch of what an owner has waiting or being drawn, in statements whose number does not grow with the batch.
 * @returns whether more may be left.
 */
export async function cancelSome(
  transaction: JobTransaction,
  { ownerId, before, locked }: Cancelable,
): Promise<{ canceled: number; more: boolean }> {
  const { manager } = transaction;
  const rows = await manager.query<Pick<ImageTask, 'id' | 'kind' | 'status'>[]>(
    `SELECT id, kind, status FROM image_tasks WHERE owner_id = $1 AND status IN ('queued', 'processing')
       AND created_at < coalesce($3, 'infinity'::timestamptz)
     ORDER BY id LIMIT $2 FOR UPDATE ${locked === 'left out' ? 'SKIP LOCKED' : ''}`,
    [ownerId, batch, before],
  );
  if (rows.length === 0) return { canceled: 0, more: false };
  for (const { id } of rows.filter(({ status }) => status === 'processing'))
    await correctCharge(manager, id, undefined);
  const ids = rows.map(({ id }) => id);
  await manager.query(
    `UPDATE image_tasks SET status = 'canceled', error = NULL, upscaler = NULL, compute_seconds = NULL,
       completed_at = greatest(date_trunc('milliseconds', clock_timestamp()), created_at)
     WHERE id = ANY ($1)`,
    [ids],
  );
  await manager.query('SELECT pg_notify(channel, id) FROM unnest($1::text[]) AS channel, unnest($2::text[]) AS id', [
    [changeChannel, stopChannel],
    ids,
  ]);
  await oweWebhooks(transaction, rows);
  return { canceled: rows.length, more: rows.length === batch };
}
