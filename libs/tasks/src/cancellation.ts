import type { Task } from '@app/domain';
import type { Transactions } from '@app/queue';
import { terminate } from './settlement';
import { addStoredOf } from './storage-use';

/** One transaction keeps this many tasks locked until it commits. */
const cancelBatchSize = 100;
/** How far the clock of the api that made a task may be ahead of the database's. */
const clockDifferenceMs = 5_000;

/**
 * Cancels, in batches, everything an owner has waiting or in progress. Tasks created meanwhile are ignored, so that it
 * ends even if the owner continues. For a process that claims nothing.
 * @returns how many tasks were canceled.
 */
export async function cancelAll(transactions: Transactions, ownerId: string): Promise<number> {
  const [{ before }] = await transactions.manager.query<[{ before: Date }]>(
    `SELECT clock_timestamp() + $1 * interval '1 ms' AS before`,
    [clockDifferenceMs],
  );
  let total = 0;
  // Locked tasks are skipped first, so that several processes can cancel in parallel; tasks locked for another reason
  // come last.
  for (const locked of ['skip', 'wait'] as const)
    for (let isMore = true; isMore;) {
      const canceled = await cancelBatch(transactions, { ownerId, before, locked });
      total += canceled;
      isMore = canceled === cancelBatchSize;
    }
  return total;
}

interface Cancelable {
  ownerId: string;
  /** Only tasks that were created before this time. */
  before?: Date;
  /** What to do with tasks that another transaction has locked, perhaps to cancel them too. */
  locked: 'skip' | 'wait';
}

/** Cancels a batch of an owner's open tasks. @returns how many: fewer than a batch when none is left. */
export function cancelBatch(transactions: Transactions, { ownerId, before, locked }: Cancelable): Promise<number> {
  return transactions.run(async (manager) => {
    const rows = await manager.query<Pick<Task, 'id' | 'kind' | 'status'>[]>(
      `SELECT id, kind, status FROM tasks WHERE owner_id = $1 AND status IN ('queued', 'processing')
         AND created_at < coalesce($3, 'infinity'::timestamptz)
       ORDER BY id LIMIT $2 FOR UPDATE ${locked === 'skip' ? 'SKIP LOCKED' : ''}`,
      [ownerId, cancelBatchSize, before],
    );
    if (rows.length > 0) {
      const released = await terminate(manager, rows, { status: 'canceled' });
      await addStoredOf(manager, released);
    }
    return rows.length;
  });
}
