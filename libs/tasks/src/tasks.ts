import type { DatabaseContact } from '@app/database';
import { type Attempt, Drawing, type DrawingTask, isTerminated, Task, type TaskQueue } from '@app/domain';
import type { Transactions } from '@app/queue';
import type { EntityManager } from 'typeorm';
import { claimNext, hasTaskForOtherModels, type ClaimFilter } from './claims';
import { cancelBatch } from './cancellation';
import { chargeFailed, chargeLost, type LostTask } from './charges';
import { deathsAfter } from './deaths';
import { findDrawing, styleThumbnailOf, writePictures } from './drawings';
import { removeTasks } from './removal';
import { isSilent, silenceUntil } from './silence';
import { StorageQuota } from './storage-quota';
import { addStoredOf } from './storage-use';
import { bytesOf, lockTask, putBack, type Served, type Settlement, terminate } from './settlement';
import { lockPrompt } from './style-thumbnails';

/** Why a task is given back, and when it may be claimed again. */
export interface Release {
  delayMs?: number;
  /** `failed`: by an error of its own. `died`: its engine was lost, as if its worker had died. */
  because?: 'failed' | 'died';
}

const silentBatchSize = 500;

/**
 * The status changes of a task, except its insertion and `cancelAll` of a whole key. Each first makes sure, by its
 * condition or by a lock, that the row is as the caller last saw it. A worker's writes carry the attempt of its claim
 * and do nothing once the row has another attempt, so a task gets one terminated status and one set of images.
 */
export class Tasks {
  /**
   * @param contact with the database; it decides whether workers that look silent are silent
   * @param maxConcurrent tasks of one key in progress, for keys without a limit of their own; 0: no limit.
   */
  constructor(
    private readonly transactions: Transactions,
    private readonly contact: DatabaseContact,
    private readonly maxConcurrent = 0,
    private readonly quota = new StorageQuota({ storageMbPerKey: 0 }),
  ) {}

  /** Claims the oldest due task of the owner who has used the least compute time and is below its limit. */
  async claim(wanted: ClaimFilter = {}): Promise<DrawingTask | undefined> {
    const { manager } = this.transactions;
    const claimed = await claimNext(manager, wanted, this.maxConcurrent);
    // A claim that has been taken over meanwhile has another attempt.
    return claimed && findDrawing(manager, { ...claimed, status: 'processing' });
  }

  /** Whether something waits that none of these models draws. */
  hasTaskForOtherModels(models: readonly string[], queue?: TaskQueue): Promise<boolean> {
    return hasTaskForOtherModels(this.transactions.manager, models, queue);
  }

  /**
   * Records that the worker of this attempt is alive. False: the task is no longer its own (canceled, deleted, taken
   * over).
   */
  heartbeat(task: Attempt): Promise<boolean> {
    return this.updateHeld(task, { heartbeatAt: () => 'now()' });
  }

  /** Records that this task is drawn alone from now on, so that a death is its fault. False as for `heartbeat`. */
  markDrawnAlone(task: Attempt): Promise<boolean> {
    return this.updateHeld(task, { drawnAlone: true });
  }

  /** Records the shape of the picture that the task is drawn from. False as for `heartbeat`. */
  recordShape({ id, attempt }: Attempt, shape: Pick<Drawing, 'aspectRatio' | 'width' | 'height'>): Promise<boolean> {
    return this.transactions.run(async (manager) => {
      const held = await manager.existsBy(Task, { id, attempt, status: 'processing' });
      if (held) await manager.update(Drawing, { id }, shape);
      return held;
    });
  }

  /** Records what draws the task. False as for `heartbeat`. */
  recordServed(task: Attempt, served: Served): Promise<boolean> {
    return this.transactions.run(async (manager) => {
      const { id, attempt } = task;
      const lock = { mode: 'for_no_key_update' } as const;
      const held = await manager.findOne(Task, { where: { id, attempt, status: 'processing' }, lock });
      if (held) await manager.update(Drawing, { id }, served);
      return held !== null;
    });
  }

  /**
   * Writes the terminated status, the images, the usage and the pending webhook delivery in one transaction, only if
   * the row still carries this attempt.
   * @returns whether this attempt has settled the task; if not, its files must be discarded. Also true when it asks
   * again because the answer to its first commit was lost.
   * @throws StorageFullError if its owner has no room left for the pictures; nothing is written
   */
  settle(task: Attempt, settlement: Settlement): Promise<boolean> {
    const { status } = settlement;
    return this.transactions.run(async (manager) => {
      if (styleThumbnailOf(settlement)) await lockPrompt(manager, task.id);
      const row = await lockTask(manager, task.id);
      if (row?.attempt !== task.attempt) return false;
      if (row.status !== 'processing') return row.status === 'succeeded' && status === 'succeeded';
      const released = await terminate(manager, [row], settlement);
      const ofStyles = status === 'succeeded' ? await writePictures(manager, row, settlement) : [];
      if (status === 'failed') await chargeFailed(manager, row, settlement);
      const pictureBytes = bytesOf(settlement);
      await addStoredOf(manager, [...released, ...ofStyles, { ownerId: row.ownerId, pictureBytes }]);
      // Its owner's row is locked by now: of several tasks only those succeed that fit.
      if (pictureBytes > 0) await this.quota.assertStorable(manager, row.ownerId, 0);
      return true;
    });
  }

  /** @throws StorageFullError if so many more bytes do not fit into what the owner may store */
  assertStorable(ownerId: string, bytes: number): Promise<void> {
    return this.quota.assertStorable(this.transactions.manager, ownerId, bytes);
  }

  /** Gives a claimed task back: any worker can draw it again. False as for `heartbeat`. */
  release(task: Attempt, { delayMs = 0, because }: Release = {}): Promise<boolean> {
    return this.transactions.run(async (manager) => {
      const row = await lockTask(manager, task.id);
      if (row?.status !== 'processing' || row.attempt !== task.attempt) return false;
      const deaths = because === 'died' ? deathsAfter(row) : row.deaths;
      const failures = row.failures + (because === 'failed' ? 1 : 0);
      await putBack(manager, row, { deaths, failures }, delayMs);
      return true;
    });
  }

  /**
   * Tasks whose workers have been silent for too long; none while this process cannot judge that after an outage of the
   * database.
   */
  silent(): Promise<Task[]> {
    return this.transactions.manager
      .createQueryBuilder(Task, 'task')
      .where(`status = 'processing' AND ${isSilent(':until')}`, { until: silenceUntil(this.contact) })
      .orderBy('task.heartbeatAt', 'ASC')
      .limit(silentBatchSize)
      .getMany();
  }

  /**
   * Puts a silent task back into the queue, or fails it with this error. False if the row has changed, or its worker
   * has been heard again.
   */
  endSilent(found: Task, error: string | undefined): Promise<boolean> {
    return this.transactions.run(async (manager) => {
      const row = await lockTask(manager, found.id);
      const isSame =
        row?.status === 'processing' &&
        row.attempt === found.attempt &&
        row.heartbeatAt?.getTime() === found.heartbeatAt?.getTime();
      if (!isSame) return false;
      // No engine draws sandbox tasks, so none can have killed its worker.
      const deaths = row.sandbox ? row.deaths : deathsAfter(row);
      if (error === undefined) await putBack(manager, row, { deaths }, 0);
      else {
        const released = await terminate(manager, [row], { status: 'failed', error });
        await manager.update(Task, { id: row.id }, { deaths });
        await addStoredOf(manager, released);
      }
      return true;
    });
  }

  /** Cancels a task that has not terminated. @returns whether it was canceled now */
  cancel(taskId: string): Promise<boolean> {
    return this.transactions.run(async (manager) => {
      const row = await lockTask(manager, taskId);
      if (!row || isTerminated(row.status)) return false;
      const released = await terminate(manager, [row], { status: 'canceled' });
      await addStoredOf(manager, released);
      return true;
    });
  }

  /** Charges what an attempt had used when its owner canceled or deleted its task. */
  async chargeLost(task: LostTask, computeSeconds: number): Promise<void> {
    if (!task.sandbox && computeSeconds > 0)
      await this.transactions.run((manager) => chargeLost(manager, task, computeSeconds));
  }

  /** Cancels a batch of an owner's open tasks, skipping locked ones. @returns how many. */
  cancelBatch(ownerId: string): Promise<number> {
    return cancelBatch(this.transactions, { ownerId, locked: 'skip' });
  }

  /**
   * Deletes a task with all its rows; a worker that draws it stops.
   * @returns the keys of the uploads that went with it
   */
  async remove(taskId: string): Promise<string[]> {
    const { uploads } = await this.transactions.run((manager) => this.removeAll(manager, [taskId]));
    return uploads;
  }

  /** Deletes many tasks as `remove` does, inside the caller's transaction: see `removeTasks`. */
  removeAll(manager: EntityManager, taskIds: readonly string[]): Promise<{ drawn: string[]; uploads: string[] }> {
    return removeTasks(manager, taskIds);
  }

  /** False: the worker no longer holds the task. */
  private updateHeld({ id, attempt }: Attempt, values: Parameters<EntityManager['update']>[2]): Promise<boolean> {
    return this.transactions.run(async (manager) => {
      const { affected } = await manager.update(Task, { id, attempt, status: 'processing' }, values);
      return affected === 1;
    });
  }
}
