import { databaseNow } from '@app/database';
import { RecurringService } from '@app/process';
import { trainingFolder, Trainings, trainingsFolder, weightsFolder } from '@app/tasks';
import { JsonLogger } from '@app/observability';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { StoredFiles } from '../files/stored-files';

const intervalMs = 3_600_000;
const batchSize = 500;

/** Removes weights without a Fine-Tune, and remains of trainings, both left by a crash. */
@Injectable()
export class WeightsSweeper extends RecurringService {
  constructor(
    private readonly dataSource: DataSource,
    private readonly trainings: Trainings,
    private readonly files: StoredFiles,
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
   * @param at milliseconds since the epoch; by default the database's time, because the machine's clock may be wrong.
   * @returns how many files were removed.
   */
  async sweep(at?: number, signal?: AbortSignal): Promise<number> {
    const now = at ?? (await databaseNow(this.dataSource));
    let removed = await this.files.removeStray(weightsFolder, {
      ...{ table: 'finetunes', column: 'weights_key' },
      ...{ now, signal },
    });
    removed += await this.removeRestsOfTrainings(now, signal);
    removed += await this.removePicturesOfTrainings(signal);
    if (removed > 0)
      this.logger.log('files of weights and trainings that nothing uses were removed', { files: removed });
    return removed;
  }

  /** @returns how many folders of trainings that are over were removed. */
  private async removeRestsOfTrainings(now: number, signal?: AbortSignal): Promise<number> {
    const found = new Set((await this.files.oldFilesIn(trainingsFolder, now)).map((key) => key.split('/')[1]));
    if (found.size === 0 || signal?.aborted) return 0;
    const rows: { id: string }[] = await this.dataSource.query(
      `SELECT training.id FROM unnest($1::text[]) AS training (id)
       WHERE NOT EXISTS (SELECT FROM tasks WHERE tasks.id = training.id AND status IN ('queued', 'processing'))`,
      [[...found]],
    );
    await this.files.removeAll(rows.map(({ id }) => trainingFolder(id)));
    return rows.length;
  }

  /** Removes uploads that the ends of their trainings did not. @returns how many */
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
      await this.files.removeAll(keys);
      removed += keys.length;
    }
    return removed;
  }
}
