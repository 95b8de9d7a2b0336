import type { JobTransaction, Transactions } from '@app/queue';
import { cancelAll, cancelBatch, cancelOne } from './cancellation';
import type { Claim, DueClaim } from './claims';
import { claimDue, claimOne } from './claims';
import type { Attempt } from './locked-task';
import type { FoundTask } from './moves';
import { release, requeue, updateHeld } from './moves';
import { removeAll, removeOne } from './removal';
import type { Settlement } from './settlement';
import { settle } from './settlement';
import { leadMs } from './silence';

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
  claimDue(ticket: string): Promise<DueClaim> {
    return claimDue(this.transactions, ticket, this.maxConcurrent);
  }

  /**
   * Takes one task, whoever is due: a queued one, or one whose worker is gone. `held`: another worker is drawing it now;
   * `settled`: it has terminated or was deleted.
   */
  claim(taskId: string): Promise<Claim> {
    return claimOne(this.transactions, taskId);
  }

  /** Says that the worker of this attempt is alive. False: the task is no longer its own (canceled, deleted, taken over). */
  heartbeat(task: Attempt): Promise<boolean> {
    return updateHeld(this.transactions, task, { heartbeatAt: () => 'now()' });
  }

  /**
   * Says that nobody does anything for the task for the next `ms` milliseconds, after which any process may claim it.
   * False as for `heartbeat`.
   */
  leave(task: Attempt, ms: number): Promise<boolean> {
    const heartbeatAt = () => `now() + ${Math.round(ms) - leadMs} * interval '1 ms'`;
    return updateHeld(this.transactions, task, { heartbeatAt });
  }

  /** Notes which weights draw the task and in how many chunks its prompt was encoded. False as for `heartbeat`. */
  drawingStarted(task: Attempt, served: { servedBy: string; promptChunks?: number }): Promise<boolean> {
    return updateHeld(this.transactions, task, served);
  }

  /**
   * Writes the terminated status, the images, the usage and the webhook's duty in one transaction, only if the
   * row still carries this attempt. False: it does not, and whatever was drawn is to be thrown away.
   */
  settle(task: Attempt, settlement: Settlement): Promise<boolean> {
    return settle(this.transactions, task, settlement);
  }

  /** Gives a claimed task back, to be drawn again by any worker, after `delayMs`. False as for `heartbeat`. */
  release(task: Attempt, { delayMs = 0 } = {}): Promise<boolean> {
    return release(this.transactions, task, delayMs);
  }

  /** Puts a task that lost its worker or its job back into the queue under a new job. False when it has moved on meanwhile. */
  requeue(found: FoundTask): Promise<boolean> {
    return requeue(this.transactions, found);
  }

  /**
   * Cancels a task that has not terminated, inside the caller's transaction.
   * @returns whether it was canceled now; undefined where there is no such task.
   */
  cancel(transaction: JobTransaction, taskId: string): Promise<{ canceled: boolean } | undefined> {
    return cancelOne(transaction, taskId);
  }

  /**
   * Cancels all that an owner has waiting or being drawn, some at a time. What comes in meanwhile is left, so that it ends though
   * the owner goes on. @returns how many tasks were canceled.
   */
  cancelAll(ownerId: string): Promise<number> {
    return cancelAll(this.transactions, ownerId);
  }

  /** Cancels some of what an owner has waiting or being drawn, but what another has locked. @returns how many. */
  cancelBatch(ownerId: string): Promise<number> {
    return cancelBatch(this.transactions, { ownerId, locked: 'left out' });
  }

  /** Deletes a task with everything that hangs on it, inside the caller's transaction; a worker that draws it stops. */
  remove(transaction: JobTransaction, taskId: string): Promise<void> {
    return removeOne(transaction, taskId);
  }

  /**
   * Deletes many tasks as `remove` does, in two statements.
   * @returns the ids of those that a worker ever took, which may have files.
   */
  removeAll(transaction: JobTransaction, taskIds: readonly string[]): Promise<string[]> {
    return removeAll(transaction, taskIds);
  }
}
