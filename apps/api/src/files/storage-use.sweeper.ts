import { RecurringService } from '@app/process';
import { recountStored } from '@app/tasks';
import { JsonLogger } from '@app/observability';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { UploadsService } from './uploads.service';

const intervalMs = 10 * 60_000;
/** Keys per batch; each key is compared once a day. */
const recountHours = 24;
const batchSize = 50;

/**
 * Compares the storage counts of keys with the rows of their files: a wrong count is corrected within a day, and files
 * of a version that did not count are counted in the first rounds.
 */
@Injectable()
export class StorageUseSweeper extends RecurringService {
  constructor(
    private readonly dataSource: DataSource,
    private readonly uploads: UploadsService,
    logger: JsonLogger,
  ) {
    super(logger);
    this.repeat({
      intervalMs,
      failure: 'sweep of storage counts failed',
      work: (signal) => this.sweepAll(signal),
    });
  }

  /** Compares batches until none is due. */
  private async sweepAll(signal: AbortSignal): Promise<void> {
    while ((await this.sweepSome(recountHours, signal)).compared === batchSize) if (signal.aborted) return;
  }

  /** @returns how many counts were wrong. */
  async sweep(agoHours = recountHours): Promise<number> {
    return (await this.sweepSome(agoHours)).wrong;
  }

  private async sweepSome(agoHours: number, signal?: AbortSignal): Promise<{ compared: number; wrong: number }> {
    await this.uploads.removeDead();
    const swept = await recountStored(this.dataSource, { most: batchSize, agoHours, signal });
    if (swept.wrong > 0) this.logger.warn('counts of stored bytes were wrong', { keys: swept.wrong });
    return swept;
  }
}
