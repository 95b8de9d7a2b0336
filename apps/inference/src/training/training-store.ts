import { createHash } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { type Attempt, isTerminated, Task } from '@app/domain';
import { JsonLogger } from '@app/observability';
import { IMAGE_STORAGE, type ImageStorage } from '@app/storage';
import { trainedWeightsKey, trainingFolder, Trainings } from '@app/tasks';
import { Inject, Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import type { TrainingAdvance, TrainingState } from './training-protocol';

/** Format of the files, to be raised with each change of it: a state of another one is of no use. */
const version = 3;
/** `<round>-<step>-<attempt>-v<version>-<model's hash>.safetensors`: of two of the same step, any is as good. */
const nameOf = /\/(?<round>\d+)-(?<step>\d+)-\d+-v(?<version>\d+)-(?<model>[0-9a-f]+)\.safetensors$/;

/** A checkpoint that is stored. */
export type StoredState = Pick<TrainingAdvance, 'round' | 'step'> & { key: string };

/** The files of trainings: checkpoints as long as one lasts, and the weights that it makes. */
@Injectable()
export class TrainingStore {
  constructor(
    @Inject(IMAGE_STORAGE) private readonly storage: ImageStorage,
    private readonly dataSource: DataSource,
    private readonly trainings: Trainings,
    private readonly logger: JsonLogger,
  ) {}

  /**
   * The state that is furthest on, with its file; undefined if there is none.
   * @param hash of the model: a state of another one, which had its name before, is passed over
   */
  async latest(id: string, hash: string): Promise<(StoredState & { checkpoint: Uint8Array }) | undefined> {
    // A worker that was taken for dead may store the next state, and remove these, while they are read.
    for (let tries = 2; tries > 0; tries--)
      for (const found of (await this.states(id, hash)).sort((a, b) => b.round - a.round || b.step - a.step)) {
        const object = await this.storage.read(found.key);
        if (object) return { ...found, checkpoint: await buffer(object.stream) };
      }
    return undefined;
  }

  /** Stores a state, and removes all before it. One that is written late by a lost worker is harmless. */
  async keep({ id, attempt }: Attempt, { round, step, checkpoint }: TrainingState, hash: string): Promise<void> {
    const key = `${trainingFolder(id)}/${round}-${step}-${attempt}-v${version}-${hash}.safetensors`;
    await this.storage.write(key, checkpoint);
    for (const other of await this.states(id, hash))
      if (other.round < round || (other.round === round && other.step < step)) await this.storage.removeAll(other.key);
  }

  /** Stores the weights of an attempt, under a key of its own. */
  async storeWeights(attempt: Attempt, weights: Uint8Array): Promise<{ key: string; hash: string; bytes: number }> {
    const hash = createHash('sha256').update(weights).digest('hex');
    const key = trainedWeightsKey(attempt, hash);
    await this.storage.write(key, weights);
    return { key, hash, bytes: weights.length };
  }

  /** Removes the files of a training, unless it goes on elsewhere. */
  async removeIfOver(id: string): Promise<void> {
    const task = await this.dataSource.manager.findOneBy(Task, { id });
    if (task && !isTerminated(task.status)) return;
    await this.removeAll(trainingFolder(id));
    for (const key of await this.trainings.dropPictures(id)) await this.removeAll(key);
  }

  private async states(id: string, hash: string): Promise<StoredState[]> {
    const states: StoredState[] = [];
    for await (const { key } of this.storage.list(trainingFolder(id))) {
      const { round, step, ...made } = nameOf.exec(key)?.groups ?? {};
      if (made.model === hash && Number(made.version) === version)
        states.push({ key, round: Number(round), step: Number(step) });
    }
    return states;
  }

  /** Files that a failure leaves behind are removed by the sweeper. */
  async removeAll(prefix: string): Promise<void> {
    await this.storage
      .removeAll(prefix)
      .catch((error: Error) => this.logger.warn('files were left behind', { prefix, reason: error.message }));
  }
}
