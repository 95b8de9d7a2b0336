import type { ImageTask } from '@app/domain';
import { isTerminated } from '@app/domain';
import type { JobTransaction, Transactions } from '@app/queue';
import { lockTask } from './locked-task';
import { terminate } from './settlement';

/** Tasks that one transaction cancels, and so holds locked for that moment. */
const batch = 100;
/** The clock of an api, by which a task was made, may be ahead of the database's by this much. */
const clockDifferenceMs = 5_000;

/** Which of an owner's tasks are canceled. */
interface Cancelable {
  ownerId: string;
  /** Only those that were made before. */
  before?: Date;
  /** What another has locked, which may be canceling it too, is left out or waited for. */
  locked: 'left out' | 'waited for';
}

/** Cancels a task that has not terminated. @returns whether it was canceled now; undefined where there is no such task. */
export async function cancelOne(
  transaction: JobTransaction,
  taskId: string,
): Promise<{ canceled: boolean } | undefined> {
  const row = await lockTask(transaction.manager, taskId);
  if (!row) return undefined;
  const canceled = !isTerminated(row.status);
  if (canceled) await terminate(transaction, [row], { status: 'canceled' });
  return { canceled };
}

/** Cancels all that an owner has open when it begins, a batch at a time. @returns how many tasks were canceled. */
export async function cancelAll(transactions: Transactions, ownerId: string): Promise<number> {
  const [{ before }] = await transactions.manager.query<[{ before: Date }]>(
    `SELECT clock_timestamp() + $1 * interval '1 ms' AS before`,
    [clockDifferenceMs],
  );
  let total = 0;
  // Others cancel beside it without a wait, and what somebody had locked for another end comes last.
  for (const locked of ['left out', 'waited for'] as const)
    for (let isMore = true; isMore;) {
      const canceled = await cancelBatch(transactions, { ownerId, before, locked });
      total += canceled;
      isMore = canceled === batch;
    }
  return total;
}

/** Cancels a batch of what an owner has waiting or being drawn. @returns how many: fewer than a batch when none is left. */
export function cancelBatch(transactions: Transactions, { ownerId, before, locked }: Cancelable): Promise<number> {
  return transactions.run(async (transaction) => {
    const rows = await transaction.manager.query<Pick<ImageTask, 'id' | 'kind' | 'status'>[]>(
      `SELECT id, kind, status FROM image_tasks WHERE owner_id = $1 AND status IN ('queued', 'processing')
         AND created_at < coalesce($3, 'infinity'::timestamptz)
       ORDER BY id LIMIT $2 FOR UPDATE ${locked === 'left out' ? 'SKIP LOCKED' : ''}`,
      [ownerId, batch, before],
    );
    if (rows.length > 0) await terminate(transaction, rows, { status: 'canceled' });
    return rows.length;
  });
}
