import type { DatabaseContact } from '@app/database';
import type { JobTransaction, Transactions } from '@app/queue';
import { cancelBatch, cancelOne } from './cancellation';
import type { Claim, DueClaim, Wanted } from './claims';
import { claimDue, claimOne } from './claims';
import type { Attempt, FoundTask } from './locked-task';
import type { Release } from './moves';
import { release, requeue, updateHeld } from './moves';
import { removeAll, removeOne } from './removal';
import type { Served, Settlement } from './settlement';
import { failFound, settle } from './settlement';

/**
 * Every status change of an image task except its insertion. Each first makes sure, by its condition or by a lock, that
 * the row is as the caller last saw it. A worker's writes carry the attempt of its claim and do nothing once the row
 * has another attempt, so a task gets one terminated status and one set of images.
 */
export class ImageTaskLifeCycle {
  /**
   * @param contact with the database; it says whether workers that look silent are
   * @param maxConcurrent tasks of one key that may be drawn at once, for keys without a limit of
   * their own; 0: no limit.
   */
  constructor(
    private readonly transactions: Transactions,
    private readonly contact: DatabaseContact,
    private readonly maxConcurrent = 0,
  ) {}

  /**
   * Claims the next task: the one that this ticket claimed before, if that worker is gone; else any task whose worker
   * is gone; else the oldest task of the owner who has used the least compute time and is below its limit.
   * Only tasks whose model the worker can draw, and those whose model no worker can.
   * @param ticket id of the job
   */
  claimDue(ticket: string, wanted: Wanted = {}): Promise<DueClaim> {
    return claimDue(this.transactions, this.contact, ticket, { maxConcurrent: this.maxConcurrent, ...wanted });
  }

  /**
   * Claims one given task, whoever's turn it is: a queued one, or one whose worker is gone. `held`: another worker is
   * drawing it; `settled`: it has terminated or was deleted.
   */
  claim(taskId: string): Promise<Claim> {
    return claimOne(this.transactions, this.contact, taskId);
  }

  /**
   * Records that the worker of this attempt is alive. False: the task is no longer its own
   * (canceled, deleted, taken over).
   */
  heartbeat(task: Attempt): Promise<boolean> {
    return updateHeld(this.transactions, task, { heartbeatAt: () => 'now()' });
  }

  /**
   * Records that the worker draws nothing else from now on, so that its death is this task's fault.
   * False as for `heartbeat`.
   */
  drawnAlone(task: Attempt): Promise<boolean> {
    return updateHeld(this.transactions, task, { drawnAlone: true });
  }

  /** Records what draws the task. False as for `heartbeat`. */
  drawingStarted(task: Attempt, served: Served): Promise<boolean> {
    return updateHeld(this.transactions, task, served);
  }

  /**
   * Writes the terminated status, the images, the usage and the pending webhook delivery in one transaction, only if
   * the row still carries this attempt. False: it does not, and the drawn files must be discarded.
   */
  settle(task: Attempt, settlement: Settlement): Promise<boolean> {
    return settle(this.transactions, task, settlement);
  }

  /** Gives a claimed task back, so that any worker can draw it again. False as for `heartbeat`. */
  release(task: Attempt, why: Release = {}): Promise<boolean> {
    return release(this.transactions, task, why);
  }

  /**
   * Requeues, under a new job, a task that lost its worker or its job. False when it has changed meanwhile, as when its
   * worker is back.
   */
  requeue(found: FoundTask): Promise<boolean> {
    return requeue(this.transactions, found);
  }

  /** Fails a task that lost its worker. False as for `requeue`. */
  failFound(found: FoundTask, error: string): Promise<boolean> {
    return failFound(this.transactions, found, error);
  }

  /**
   * Cancels a task that has not terminated, inside the caller's transaction.
   * @returns whether it was canceled now; undefined if there is no such task.
   */
  cancel(transaction: JobTransaction, taskId: string): Promise<{ canceled: boolean } | undefined> {
    return cancelOne(transaction, taskId);
  }

  /** Cancels a batch of what an owner has waiting or being drawn, skipping locked tasks. @returns how many. */
  cancelBatch(ownerId: string): Promise<number> {
    return cancelBatch(this.transactions, { ownerId, locked: 'skip' });
  }

  /** Deletes a task with all its rows, inside the caller's transaction; a worker that draws it stops. */
  remove(transaction: JobTransaction, taskId: string): Promise<void> {
    return removeOne(transaction, taskId);
  }

  /**
   * Deletes many tasks as `remove` does, in two statements.
   * @returns the ids of those that a worker ever claimed, which may have files.
   */
  removeAll(transaction: JobTransaction, taskIds: readonly string[]): Promise<string[]> {
    return removeAll(transaction, taskIds);
  }
}
