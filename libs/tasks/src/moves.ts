import { ImageTask } from '@app/domain';
import type { JobTransaction, Transactions } from '@app/queue';
import { jobIdOf } from '@app/queue';
import type { EntityManager } from 'typeorm';
import { announce, changeChannel } from './channels';
import { correctCharge } from './fair-queue';
import type { Attempt, FoundTask } from './locked-task';
import { lockAttempt, lockFound } from './locked-task';
import { deathsAfter } from './deaths';

/** Writes a worker's update of a task it holds. False: it no longer holds the task. */
export function updateHeld(
  transactions: Transactions,
  { id, attempt }: Attempt,
  values: Parameters<EntityManager['update']>[2],
): Promise<boolean> {
  return transactions.run(async ({ manager }) => {
    const { affected } = await manager.update(ImageTask, { id, attempt, status: 'processing' }, values);
    return affected === 1;
  });
}

/** Why a task is given back, and when it may be claimed again. */
export interface Release {
  delayMs?: number;
  /** `failed`: by an error of its own. `died`: its engine was lost, as if its worker had died. */
  because?: 'failed' | 'died';
}

export function release(
  transactions: Transactions,
  task: Attempt,
  { delayMs = 0, because }: Release = {},
): Promise<boolean> {
  return transactions.run(async (transaction) => {
    const row = await lockAttempt(transaction.manager, task);
    if (!row) return false;
    const deaths = because === 'died' ? deathsAfter(row) : row.deaths;
    const failures = row.failures + (because === 'failed' ? 1 : 0);
    await putBack(transaction, Object.assign(row, { deaths, failures }), delayMs);
    return true;
  });
}

export function requeue(transactions: Transactions, found: FoundTask): Promise<boolean> {
  return transactions.run(async (transaction) => {
    const row = await lockFound(transaction.manager, found);
    if (!row) return false;
    const deaths = row.status === 'processing' ? deathsAfter(row) : row.deaths;
    await putBack(transaction, Object.assign(row, { deaths }), 0);
    return true;
  });
}

/** Requeues a task under a new job; one of a sandbox key needs none. */
async function putBack(transaction: JobTransaction, row: ImageTask, delayMs: number): Promise<void> {
  const enqueued = row.enqueued + 1;
  await transaction.manager.update(
    ImageTask,
    { id: row.id },
    {
      status: 'queued',
      enqueued,
      deaths: row.deaths,
      failures: row.failures,
      drawnAlone: false,
      heartbeatAt: () => 'NULL',
      ticket: () => 'NULL',
      slot: () => 'NULL',
      notBefore: () => `now() + ${delayMs} * interval '1 ms'`,
    },
  );
  // The next claim charges it again.
  if (row.status === 'processing') await correctCharge(transaction.manager, row.id, 0);
  await announce(transaction.manager, [changeChannel], [row.id]);
  if (row.sandbox) return;
  const job = { id: jobIdOf(row.id, enqueued), data: { taskId: row.id }, delayMs };
  await transaction.enqueue('images', job);
}
