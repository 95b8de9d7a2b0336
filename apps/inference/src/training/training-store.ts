import { createHash } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { isTerminated, Task } from '@app/domain';
import { JsonLogger } from '@app/observability';
import { IMAGE_STORAGE, type ImageStorage } from '@app/storage';
import { type Attempt, trainingFolder, Trainings, weightsFolderOf } from '@app/tasks';
import { Inject, Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import type { TrainingAdvance, TrainingState } from './training-protocol';

/** `<round>-<step>-<attempt>-<computeMs>.safetensors`: of two of the same step, any is as good. */
const nameOf = /\/(?<round>\d+)-(?<step>\d+)-(?<attempt>\d+)-(?<computeMs>\d+)\.safetensors$/;

/** A checkpoint that is stored, and what came before it. */
export type StoredState = Pick<TrainingAdvance, 'round' | 'step' | 'computeMs'> & { key: string };

/** The files of trainings: checkpoints as long as one lasts, and the weights that it makes. */
@Injectable()
export class TrainingStore {
  constructor(
    @Inject(IMAGE_STORAGE) private readonly storage: ImageStorage,
    private readonly dataSource: DataSource,
    private readonly trainings: Trainings,
    private readonly logger: JsonLogger,
  ) {}

  /** The state that is furthest on, with its file; undefined if there is none. */
  async latest(id: string): Promise<(StoredState & { checkpoint: Uint8Array }) | undefined> {
    const [found] = (await this.states(id)).sort((a, b) => b.round - a.round || b.step - a.step);
    const object = found && (await this.storage.read(found.key));
    return object && { ...found, checkpoint: await buffer(object.stream) };
  }

  /** Stores a state, and removes those before it. One that is written late by a lost worker is harmless. */
  async keep({ id, attempt }: Attempt, { round, step, computeMs, checkpoint }: TrainingState): Promise<void> {
    const key = `${trainingFolder(id)}/${round}-${step}-${attempt}-${Math.round(computeMs)}.safetensors`;
    await this.storage.write(key, checkpoint);
    for (const other of await this.states(id))
      if (other.round < round || (other.round === round && other.step < step)) await this.storage.removeAll(other.key);
  }

  /** Stores the weights of an attempt, under a key of its own. */
  async storeWeights(
    { id, attempt }: Attempt,
    weights: Uint8Array,
  ): Promise<{ key: string; hash: string; bytes: number }> {
    const hash = createHash('sha256').update(weights).digest('hex');
    const key = `${weightsFolderOf(id)}/${attempt}-${hash}.safetensors`;
    await this.storage.write(key, weights);
    return { key, hash, bytes: weights.length };
  }

  /** Removes weights that no Fine-Tune got. */
  removeWeights(key: string): Promise<void> {
    return this.removeAll(key);
  }

  /** Removes what the training needed, unless it goes on elsewhere. */
  async removeIfOver(id: string): Promise<void> {
    const task = await this.dataSource.manager.findOneBy(Task, { id });
    if (task && !isTerminated(task.status)) return;
    await this.removeAll(trainingFolder(id));
    for (const key of await this.trainings.dropPictures(id)) await this.removeAll(key);
  }

  private async states(id: string): Promise<StoredState[]> {
    const states: StoredState[] = [];
    for await (const { key } of this.storage.list(trainingFolder(id))) {
      const { round, step, computeMs } = nameOf.exec(key)?.groups ?? {};
      if (round !== undefined)
        states.push({ key, round: Number(round), step: Number(step), computeMs: Number(computeMs) });
    }
    return states;
  }

  /** The sweeper removes what a failure leaves behind. */
  private async removeAll(prefix: string): Promise<void> {
    await this.storage
      .removeAll(prefix)
      .catch((error: Error) => this.logger.warn('files were left behind', { prefix, reason: error.message }));
  }
}
