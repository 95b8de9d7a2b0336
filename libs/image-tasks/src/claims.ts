import { ImageTask } from '@app/domain';
import type { Transactions } from '@app/queue';
import { announce, changeChannel } from './channels';
import { claimNext, countWaiting } from './fair-queue';
import { heartbeatTimeoutMs, silenceFactor } from './silence';

/** What the claim of one task found. */
export type Claim = { kind: 'claimed'; task: ImageTask } | { kind: 'settled' } | { kind: 'held' };

/** What a ticket was good for: nothing is queued (`none`), or nothing that may be drawn before `retryMs`. */
export type DueClaim = { kind: 'claimed'; task: ImageTask } | { kind: 'none' } | { kind: 'wait'; retryMs: number };

/** A task that another worker holds is looked at again after this; by then its worker has said that it lives, or has not. */
const heldRetryMs = heartbeatTimeoutMs / 5;
/**
 * When tasks wait but none may be drawn, its ticket comes again after this for each of them: the tickets of a key at its cap
 * come 20 times a second, however many they are, within these bounds.
 */
const waitingRetryMs = { each: 50, least: 500, most: 30_000 };

/**
 * Takes the task that is due: the one that this ticket claimed before, if the worker that took it is gone, else any whose worker is
 * gone, else the oldest of the owner whose turn it is.
 */
export async function claimDue(transactions: Transactions, ticket: string, maxConcurrent: number): Promise<DueClaim> {
  const { manager } = transactions;
  const own = await manager.findOne(ImageTask, { select: { id: true }, where: { ticket, status: 'processing' } });
  const claim = own && (await claimOne(transactions, own.id));
  if (claim?.kind === 'claimed') return claim;
  if (claim?.kind === 'held') return { kind: 'wait', retryMs: heldRetryMs };
  const id = await claimNext(manager, ticket, { maxConcurrent, silenceMs: heartbeatTimeoutMs });
  const task = id === undefined ? null : await manager.findOneBy(ImageTask, { id, ticket, status: 'processing' });
  if (task) return { kind: 'claimed', task };
  const { each, least, most } = waitingRetryMs;
  const count = await countWaiting(manager, most / each);
  return count === 0 ? { kind: 'none' } : { kind: 'wait', retryMs: Math.max(least, each * count) };
}

/** Takes one task, whoever is due: a queued one, or one whose worker is gone. */
export function claimOne(transactions: Transactions, taskId: string): Promise<Claim> {
  return transactions.run(async ({ manager }) => {
    const { affected } = await manager
      .createQueryBuilder()
      .update(ImageTask)
      .set({
        status: 'processing',
        attempt: () => 'attempt + 1',
        startedAt: () => `coalesce(started_at, now())`,
        heartbeatAt: () => 'now()',
        // No engine can be the reason where none draws.
        deaths: () => `deaths + (status = 'processing' AND NOT sandbox)::integer`,
      })
      .where('id = :taskId', { taskId })
      .andWhere(
        `(status = 'queued' OR (status = 'processing' AND heartbeat_at < now() - :timeout * ${silenceFactor} * interval '1 ms'))`,
        { timeout: heartbeatTimeoutMs },
      )
      .execute();
    const task = await manager.findOneBy(ImageTask, { id: taskId });
    if (affected && task) {
      await announce(manager, [changeChannel], [taskId]);
      return { kind: 'claimed', task };
    }
    return task?.status === 'processing' ? { kind: 'held' } : { kind: 'settled' };
  });
}
