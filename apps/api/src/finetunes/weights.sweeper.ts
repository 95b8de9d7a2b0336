import { databaseNow } from '@app/database';
import { IMAGE_STORAGE, type ImageStorage } from '@app/storage';
import { RecurringService } from '@app/process';
import { addStored, trainingFolder, Trainings, trainingsFolder, weightsFolder } from '@app/tasks';
import { JsonLogger } from '@app/observability';
import { Inject, Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { strayFileAfterMs } from '../files/stored-files';

const intervalMs = 3_600_000;
const batchSize = 500;

/** Removes weights without a Fine-Tune, and what is left of trainings: a crash leaves these behind. */
@Injectable()
export class WeightsSweeper extends RecurringService {
  constructor(
    @Inject(IMAGE_STORAGE) private readonly storage: ImageStorage,
    private readonly dataSource: DataSource,
    private readonly trainings: Trainings,
    logger: JsonLogger,
  ) {
    super(logger);
    this.repeat({
      intervalMs,
      failure: 'sweep of weights failed',
      work: (signal) => this.sweep(undefined, signal),
    });
  }

  /**
   * @param at milliseconds since the epoch; the database's time unless given, for the machine's clock may be wrong.
   * @returns how many files were removed.
   */
  async sweep(at?: number, signal?: AbortSignal): Promise<number> {
    const now = at ?? (await databaseNow(this.dataSource));
    const old: string[] = [];
    const sizes = new Map<string, number>();
    for await (const { key, bytes, modifiedAt } of this.storage.list(weightsFolder)) {
      if (now - modifiedAt.getTime() > strayFileAfterMs) old.push(key);
      sizes.set(key, bytes);
    }
    await this.measure(sizes);
    let removed = 0;
    for (let start = 0; start < old.length && !signal?.aborted; start += batchSize) {
      const rows: { key: string }[] = await this.dataSource.query(
        `SELECT key FROM unnest($1::text[]) AS key
         WHERE NOT EXISTS (SELECT FROM finetunes WHERE weights_key = key)`,
        [old.slice(start, start + batchSize)],
      );
      for (const { key } of rows) await this.storage.removeAll(key);
      removed += rows.length;
    }
    removed += await this.removeRestsOfTrainings(now, signal);
    removed += await this.removePicturesOfTrainings(signal);
    if (removed > 0)
      this.logger.log('files of weights and trainings that nothing uses were removed', { files: removed });
    return removed;
  }

  /** @returns how many folders of trainings that are over were removed. */
  private async removeRestsOfTrainings(now: number, signal?: AbortSignal): Promise<number> {
    const found = new Set<string>();
    for await (const { key, modifiedAt } of this.storage.list(trainingsFolder))
      if (now - modifiedAt.getTime() > strayFileAfterMs) found.add(key.split('/')[1]);
    if (found.size === 0 || signal?.aborted) return 0;
    const rows: { id: string }[] = await this.dataSource.query(
      `SELECT training.id FROM unnest($1::text[]) AS training (id)
       WHERE NOT EXISTS (SELECT FROM tasks WHERE tasks.id = training.id AND status IN ('queued', 'processing'))`,
      [[...found]],
    );
    for (const { id } of rows) await this.storage.removeAll(trainingFolder(id));
    return rows.length;
  }

  /** @returns how many uploads that trainings needed were removed, where the end of these did not do it. */
  private async removePicturesOfTrainings(signal?: AbortSignal): Promise<number> {
    const ended = await this.dataSource.query<{ id: string }[]>(
      `SELECT id FROM tasks WHERE kind = 'training' AND status IN ('succeeded', 'failed', 'canceled')
         AND id IN (SELECT task_id FROM picture_uses)
         AND owner_id NOT IN (SELECT id FROM api_keys WHERE keep_training_uploads) LIMIT $1`,
      [batchSize],
    );
    let removed = 0;
    for (const { id } of ended) {
      if (signal?.aborted) break;
      const keys = await this.trainings.dropPictures(id);
      for (const key of keys) await this.storage.removeAll(key);
      removed += keys.length;
    }
    return removed;
  }

  /** Stores the size of files from before sizes were stored. */
  private async measure(sizes: ReadonlyMap<string, number>): Promise<void> {
    const unknown = await this.dataSource.query<{ owner_id: string; weights_key: string }[]>(
      'SELECT owner_id, weights_key FROM finetunes WHERE weights_key IS NOT NULL AND weights_bytes IS NULL LIMIT $1',
      [batchSize],
    );
    for (const { owner_id: ownerId, weights_key: key } of unknown)
      await this.dataSource.transaction(async (manager) => {
        const [, changed] = await manager.query<[unknown, number]>(
          'UPDATE finetunes SET weights_bytes = $2 WHERE weights_key = $1 AND weights_bytes IS NULL',
          [key, sizes.get(key) ?? 0],
        );
        if (changed > 0) await addStored(manager, ownerId, { weightBytes: sizes.get(key) ?? 0 });
      });
  }
}
