import type { TerminatedStatus } from '@app/domain';
import { Image, ImageTask, isTerminated } from '@app/domain';
import type { EntityManager } from 'typeorm';
import { cancelSome } from './cancel-some';
import { changeChannel, stopChannel } from './channels';
import { claimDue, correctCharge, countWaiting, silenceFactor } from './fair-queue';
import { forgetReplies } from './forget-replies';
import { jobIdOf } from '@app/queue';
import { oweWebhooks } from './owed-webhooks';
import { addStored, removeTasksStatement } from './storage-use';
import type { JobTransaction, Transactions } from '@app/queue';

/** A worker that has not said it is alive for this long has lost its task. */
export const heartbeatTimeoutMs = 10_000;

/** A task that another worker holds is looked at again after this; by then its worker has said that it lives, or has not. */
const heldRetryMs = heartbeatTimeoutMs / 5;
/**
 * When tasks wait but none may be drawn, its ticket comes again after this for each of them: the tickets of a key at its cap
 * come 20 times a second, however many they are, within these bounds.
 */
const waitingRetryMs = { each: 50, least: 500, most: 30_000 };

/** A task that was left alone is due this long after its heartbeat, so that no clock that is a little behind holds it any longer. */
const leadMs = 2 * heartbeatTimeoutMs;
/** Until when a task was left alone, in SQL. */
export const leftUntil = `heartbeat_at + ${leadMs} * interval '1 ms'`;

/** The clock of an api, by which a task was made, may be ahead of the database's by this much. */
const clockDifferenceMs = 5_000;

/** How a task ended and what came of it. */
export interface Settlement {
  status: TerminatedStatus;
  error?: string | null;
  upscaler?: string | null;
  computeSeconds?: number;
  images?: readonly Omit<Image, 'task' | 'taskId'>[];
}

/** What the claim of one task found. */
export type Claim = { kind: 'claimed'; task: ImageTask } | { kind: 'settled' } | { kind: 'held' };

/** What a ticket was good for: nothing is queued (`none`), or nothing that may be drawn before `retryMs`. */
export type DueClaim = { kind: 'claimed'; task: ImageTask } | { kind: 'none' } | { kind: 'wait'; retryMs: number };

/**
 * Every move of an image task's status, each one conditional update. A worker's writes carry the attempt
 * of its claim and do nothing once the row has another, so a task has one terminated status and one set of images.
 */
export class ImageTaskLifeCycle {
  /** @param maxConcurrent tasks of one key that may be drawn at once, where the key has no cap of its own; 0: any number. */
  constructor(
    private readonly transactions: Transactions,
    private readonly maxConcurrent = 0,
  ) {}

  /**
   * Takes the task that is due: the one that this ticket claimed before, if the worker that took it is gone, else any whose
   * worker is gone, else the oldest of the owner who has had the least compute time and is below the cap.
   * @param ticket id of the job.
   */
  async claimDue(ticket: string): Promise<DueClaim> {
    const { manager } = this.transactions;
    const own = await manager.findOne(ImageTask, { select: { id: true }, where: { ticket, status: 'processing' } });
    const claim = own && (await this.claim(own.id));
    if (claim?.kind === 'claimed') return claim;
    if (claim?.kind === 'held') return { kind: 'wait', retryMs: heldRetryMs };
    const limits = { maxConcurrent: this.maxConcurrent, silenceMs: heartbeatTimeoutMs };
    const id = await claimDue(manager, ticket, limits);
    const task = id === undefined ? null : await manager.findOneBy(ImageTask, { id, ticket, status: 'processing' });
    if (task) return { kind: 'claimed', task };
    const { each, least, most } = waitingRetryMs;
    const count = await countWaiting(manager, most / each);
    return count === 0 ? { kind: 'none' } : { kind: 'wait', retryMs: Math.max(least, each * count) };
  }

  /**
   * Takes one task, whoever is due: a queued one, or one whose worker is gone. `held`: another worker is drawing it now;
   * `settled`: it has terminated or was deleted.
   */
  claim(taskId: string): Promise<Claim> {
    return this.transactions.run(async ({ manager }) => {
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
          {
            timeout: heartbeatTimeoutMs,
          },
        )
        .execute();
      const task = await manager.findOneBy(ImageTask, { id: taskId });
      if (affected && task) {
        await announce(manager, changeChannel, taskId);
        return { kind: 'claimed', task };
      }
      return task?.status === 'processing' ? { kind: 'held' } : { kind: 'settled' };
    });
  }

  /** Says that the worker of this attempt is alive. False: the task is no longer its own (canceled, deleted, taken over). */
  heartbeat(task: Pick<ImageTask, 'id' | 'attempt'>): Promise<boolean> {
    return this.update(task, { heartbeatAt: () => 'now()' });
  }

  /**
   * Says that nobody does anything for the task for the next `ms` milliseconds, after which any process may claim it.
   * False as for `heartbeat`.
   */
  leave(task: Pick<ImageTask, 'id' | 'attempt'>, ms: number): Promise<boolean> {
    return this.update(task, { heartbeatAt: () => `now() + ${Math.round(ms) - leadMs} * interval '1 ms'` });
  }

  /** Notes which weights draw the task and in how many chunks its prompt was encoded. False as for `heartbeat`. */
  drawingStarted(
    task: Pick<ImageTask, 'id' | 'attempt'>,
    served: { servedBy: string; promptChunks?: number },
  ): Promise<boolean> {
    return this.update(task, served);
  }

  /**
   * Writes the terminated status, the images, the usage and the webhook's duty in one transaction, only if the
   * row still carries this attempt. False: it does not, and whatever was drawn is to be thrown away.
   */
  settle(task: Pick<ImageTask, 'id' | 'attempt'>, settlement: Settlement): Promise<boolean> {
    return this.transactions.run(async (transaction) => {
      const { manager } = transaction;
      const row = await lock(manager, task.id);
      if (!row || row.status !== 'processing' || row.attempt !== task.attempt) return false;
      await terminate(manager, row, settlement);
      if (settlement.images?.length)
        await manager.insert(
          Image,
          settlement.images.map((image) => ({ ...image, taskId: task.id })),
        );
      if (settlement.status === 'succeeded' && !row.sandbox) await recordUsage(manager, row, settlement);
      await oweWebhooks(transaction, [row]);
      await addStored(manager, row.ownerId, { pictureBytes: bytesOf(settlement) });
      return true;
    });
  }

  /** Gives a claimed task back, to be drawn again by any worker, after `delayMs`. False as for `heartbeat`. */
  release(task: Pick<ImageTask, 'id' | 'attempt'>, { delayMs = 0 } = {}): Promise<boolean> {
    return this.transactions.run(async (transaction) => {
      const row = await lock(transaction.manager, task.id);
      if (!row || row.status !== 'processing' || row.attempt !== task.attempt) return false;
      await requeue(transaction, row, delayMs);
      return true;
    });
  }

  /**
   * Cancels a task that has not terminated, inside the caller's transaction.
   * @returns the row as it is now; `canceled` false when it had terminated before.
   */
  async cancel(transaction: JobTransaction, taskId: string): Promise<{ canceled: boolean } | undefined> {
    const row = await lock(transaction.manager, taskId);
    if (!row) return undefined;
    if (row.status !== 'queued' && row.status !== 'processing') return { canceled: false };
    await terminate(transaction.manager, row, { status: 'canceled' });
    await announce(transaction.manager, stopChannel, taskId);
    await oweWebhooks(transaction, [row]);
    return { canceled: true };
  }

  /**
   * Cancels all that an owner has waiting or being drawn, some at a time. What comes in meanwhile is left, so that it ends though
   * the owner goes on. @returns how many tasks were canceled.
   */
  async cancelAll(ownerId: string): Promise<number> {
    const [{ before }] = await this.transactions.manager.query<[{ before: Date }]>(
      `SELECT clock_timestamp() + $1 * interval '1 ms' AS before`,
      [clockDifferenceMs],
    );
    let total = 0;
    // Others cancel beside it without a wait, and what somebody had locked for another end comes last.
    for (const locked of ['left out', 'waited for'] as const)
      for (let isMore = true; isMore;) {
        const { canceled, more } = await this.transactions.run((transaction) =>
          cancelSome(transaction, { ownerId, before, locked }),
        );
        total += canceled;
        isMore = more;
      }
    return total;
  }

  /** Cancels some of what an owner has waiting or being drawn, but what another has locked. @returns how many. */
  async cancelBatch(ownerId: string): Promise<number> {
    const { canceled } = await this.transactions.run((transaction) =>
      cancelSome(transaction, { ownerId, locked: 'left out' }),
    );
    return canceled;
  }

  /** Deletes a task with everything that hangs on it, inside the caller's transaction; a worker that draws it stops. */
  async remove(transaction: JobTransaction, taskId: string): Promise<void> {
    await transaction.manager.query(removeTasksStatement, [[taskId]]);
    await forgetReplies(transaction.manager, [taskId]);
    await announce(transaction.manager, changeChannel, taskId);
    await announce(transaction.manager, stopChannel, taskId);
  }

  /**
   * Deletes many tasks as `remove` does, in two statements.
   * @returns the ids of those that a worker ever took, which may have files.
   */
  async removeAll(transaction: JobTransaction, taskIds: readonly string[]): Promise<string[]> {
    const { manager } = transaction;
    const removed: Pick<ImageTask, 'id' | 'attempt' | 'status'>[] = await manager.query(removeTasksStatement, [
      taskIds,
    ]);
    await forgetReplies(manager, taskIds);
    const open = removed.filter(({ status }) => !isTerminated(status)).map(({ id }) => id);
    await manager.query('SELECT pg_notify(channel, id) FROM unnest($1::text[]) AS channel, unnest($2::text[]) AS id', [
      [changeChannel, stopChannel],
      open,
    ]);
    return removed.filter(({ attempt }) => attempt > 0).map(({ id }) => id);
  }

  /** Puts a task that lost its worker or its job back into the queue under a new job. False when it has moved on meanwhile. */
  requeue(seen: Pick<ImageTask, 'id' | 'attempt' | 'enqueued' | 'status'>): Promise<boolean> {
    return this.transactions.run(async (transaction) => {
      const row = await lock(transaction.manager, seen.id);
      if (!row || row.status !== seen.status || row.attempt !== seen.attempt || row.enqueued !== seen.enqueued)
        return false;
      const deaths = row.deaths + (row.status === 'processing' ? 1 : 0);
      await requeue(transaction, Object.assign(row, { deaths }));
      return true;
    });
  }

  private update(
    task: Pick<ImageTask, 'id' | 'attempt'>,
    values: Parameters<EntityManager['update']>[2],
  ): Promise<boolean> {
    return this.transactions.run(async ({ manager }) => {
      const { affected } = await manager.update(
        ImageTask,
        { id: task.id, attempt: task.attempt, status: 'processing' },
        values,
      );
      return affected === 1;
    });
  }
}

/** Told with the commit of the surrounding transaction. */
function announce(manager: EntityManager, channel: string, taskId: string): Promise<unknown> {
  return manager.query('SELECT pg_notify($1, $2)', [channel, taskId]);
}

function lock(manager: EntityManager, id: string): Promise<ImageTask | null> {
  return manager.findOne(ImageTask, { where: { id }, lock: { mode: 'pessimistic_write' } });
}

async function requeue(transaction: JobTransaction, row: ImageTask, delayMs = 0): Promise<void> {
  const enqueued = row.enqueued + 1;
  await transaction.manager.update(
    ImageTask,
    { id: row.id },
    {
      status: 'queued',
      enqueued,
      deaths: row.deaths,
      heartbeatAt: () => 'NULL',
      ticket: () => 'NULL',
      slot: () => 'NULL',
      notBefore: () => `now() + ${delayMs} * interval '1 ms'`,
    },
  );
  // It is charged anew by its next claim.
  if (row.status === 'processing') await correctCharge(transaction.manager, row.id, 0);
  await announce(transaction.manager, changeChannel, row.id);
  const job = { id: jobIdOf(row.id, enqueued), data: { taskId: row.id }, delayMs };
  await transaction.enqueue(row.sandbox ? 'sandbox' : 'images', job);
}

async function terminate(manager: EntityManager, row: ImageTask, settlement: Settlement): Promise<void> {
  if (row.status === 'processing') await correctCharge(manager, row.id, settlement.computeSeconds);
  await manager.update(
    ImageTask,
    { id: row.id },
    {
      status: settlement.status,
      error: settlement.error ?? null,
      upscaler: settlement.upscaler ?? null,
      computeSeconds: settlement.computeSeconds ?? null,
      pictureBytes: bytesOf(settlement),
      completedAt: () => `greatest(date_trunc('milliseconds', clock_timestamp()), created_at)`,
    },
  );
  await announce(manager, changeChannel, row.id);
}

function bytesOf({ images = [] }: Settlement): number {
  return images.reduce((sum, { bytes }) => sum + bytes, 0);
}

async function recordUsage(manager: EntityManager, row: ImageTask, settlement: Settlement): Promise<void> {
  const images = settlement.images?.length ?? 0;
  await manager.query(
    `INSERT INTO daily_usage (owner_id, day, model, finetune_id, images, steps, compute_seconds)
     VALUES ($1, (now() AT TIME ZONE 'UTC')::date, $2, $3, $4, $5, $6)
     ON CONFLICT (owner_id, day, model, finetune_id) DO UPDATE SET
       images = daily_usage.images + excluded.images,
       steps = daily_usage.steps + excluded.steps,
       compute_seconds = daily_usage.compute_seconds + excluded.compute_seconds`,
    [row.ownerId, row.model, row.finetuneId ?? '', images, images * row.steps, settlement.computeSeconds ?? 0],
  );
}
