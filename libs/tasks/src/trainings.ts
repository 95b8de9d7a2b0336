import { ApiKey, type Attempt, Finetune, isTerminated, Task, Training, type TrainingTask } from '@app/domain';
import type { Transactions } from '@app/queue';
import { claimNext, type ClaimFilter } from './claims';
import { lockTask, terminate } from './settlement';
import { addStoredOf } from './storage-use';
import { dropUploads } from './uploads';
import { assignWeights, type NewWeights } from './weights';

/** Compute seconds of a training step on a typical GPU. The real cost replaces the estimate in the end. */
const secondsPerStep = 0.3;

/** Estimated compute seconds of a training. */
export const costOfTraining = ({ steps }: Pick<Training, 'steps'>): number => secondsPerStep * steps;

/** A Fine-Tune that is to be trained, or whose weights are to be fetched, and how. */
export interface NewTraining {
  finetune: Pick<Finetune, 'id' | 'ownerId' | 'name' | 'title' | 'token' | 'model' | 'metadata' | 'createdAt'>;
  sandbox: boolean;
  endUser: string | null;
  training: Pick<Training, 'imagesUrl' | 'captions' | 'steps' | 'seed' | 'webhook' | 'weightsUrl' | 'weightsSha256'>;
}

/** A task with the weights that it fetches. */
export type WeightsTask = Task & { weightsUrl: string; weightsSha256: string | null };

/** How a training ended well. */
export interface Trained {
  weights: NewWeights;
  computeSeconds: number;
  note: string | null;
}

/** All attempts together. */
export type TrainedSteps = Pick<Training, 'step' | 'computeSeconds'>;

/**
 * The status changes that trainings have beside those of all tasks. A worker's writes carry the attempt of its claim,
 * as those in `Tasks`.
 */
export class Trainings {
  /** @param maxConcurrent Fine-Tunes of one key that may be trained at once; 0: no limit. */
  constructor(
    private readonly transactions: Transactions,
    private readonly maxConcurrent = 1,
  ) {}

  /** Claims the oldest due training of the owner who has used the least compute time and is below its limit. */
  async claim(wanted: Omit<ClaimFilter, 'queue'> = {}): Promise<TrainingTask | undefined> {
    const { manager } = this.transactions;
    const claimed = await claimNext(manager, { ...wanted, queue: 'training' }, this.maxConcurrent);
    if (!claimed) return undefined;
    // A claim that has been taken over meanwhile has another attempt.
    const where = { task: { ...claimed, status: 'processing' as const } };
    const training = await manager.findOne(Training, { where, relations: { task: true } });
    if (!training) return undefined;
    const { task, imagesUrl, captions, steps, seed, step } = training;
    return Object.assign(task, { imagesUrl, captions, steps, seed, step, trainedSeconds: training.computeSeconds });
  }

  /** Claims the oldest due fetch of weights of the owner who has used the least compute time and fetches none. */
  async claimFetch(sandbox: boolean): Promise<WeightsTask | undefined> {
    const { manager } = this.transactions;
    const claimed = await claimNext(manager, { queue: 'weights', sandbox }, 1);
    if (!claimed) return undefined;
    const where = { task: { ...claimed, status: 'processing' as const } };
    const found = await manager.findOne(Training, { where, relations: { task: true } });
    return found && found.weightsUrl !== null
      ? Object.assign(found.task, { weightsUrl: found.weightsUrl, weightsSha256: found.weightsSha256 })
      : undefined;
  }

  /**
   * Records how far a training is. False: the task is no longer this attempt's.
   * @param isKept whether the next attempt goes on from there: then the ends of earlier attempts no longer count
   */
  recordProgress({ id, attempt }: Attempt, progress: TrainedSteps, isKept: boolean): Promise<boolean> {
    return this.transactions.run(async (manager) => {
      const lock = { mode: 'for_no_key_update' } as const;
      const held = await manager.findOne(Task, { where: { id, attempt, status: 'processing' }, lock });
      if (!held) return false;
      await manager.update(Training, { id }, progress);
      if (isKept && held.deaths + held.failures > 0) await manager.update(Task, { id }, { deaths: 0, failures: 0 });
      return true;
    });
  }

  /**
   * Deletes the uploads that only this training needed, if it has ended and its key does not keep them.
   * @returns the keys of their files, to be removed next
   */
  dropPictures(id: string): Promise<string[]> {
    return this.transactions.run(async (manager) => {
      const task = await manager.findOneBy(Task, { id, kind: 'training' });
      if (!task || !isTerminated(task.status)) return [];
      const keeps = await manager.existsBy(ApiKey, { id: task.ownerId, keepTrainingUploads: true });
      return keeps ? [] : dropUploads(manager, [id]);
    });
  }

  /** Gives the Fine-Tune its weights and ends its training. The result is that of `Tasks.settle`. */
  settle(attempt: Attempt, { weights, computeSeconds, note }: Trained): Promise<boolean> {
    const { id } = attempt;
    return this.transactions.run(async (manager) => {
      // A deletion locks the two in this order.
      const finetune = await manager.findOne(Finetune, { where: { id }, lock: { mode: 'pessimistic_write' } });
      const row = await lockTask(manager, id);
      if (!finetune || row?.attempt !== attempt.attempt) return false;
      if (row.status !== 'processing') return row.status === 'succeeded';
      await manager.update(Training, { id }, { step: () => 'steps', computeSeconds, note });
      const { weightBytes } = await assignWeights(manager, finetune, weights);
      const released = await terminate(manager, [row], { status: 'succeeded', computeSeconds });
      await addStoredOf(manager, [...released, { ownerId: finetune.ownerId, weightBytes }]);
      return true;
    });
  }
}
