import { underSessionLock } from '@app/database';
import { RecurringService } from '@app/process';
import { JsonLogger } from '@app/observability';
import { Inject, Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { WorkerPresence } from '../health/worker-presence';
import { FileSweeper } from './file-sweeper';

/** Listing a storage is expensive, and orphaned files do little harm: a process does it once in this time. */
const fileIntervalMs = 15 * 60_000;
/** How often it looks whether that is due: workers that are restarted every ten minutes have to do it too. */
const fileCheckMs = 60_000;

/** Advisory lock that lets one process at a time sweep files: "SWEF" in ASCII. */
export const fileSweepLock = 0x53574546;

/** Sweeps files at slightly irregular intervals, in one process at a time. */
@Injectable()
export class Sweeper extends RecurringService {
  private filesSweptAt = -Infinity;

  constructor(
    private readonly dataSource: DataSource,
    private readonly files: FileSweeper,
    @Inject(WorkerPresence) private readonly presence: Pick<WorkerPresence, 'isEldest'>,
    logger: JsonLogger,
  ) {
    super(logger);
    this.repeat({
      ...{ intervalMs: fileCheckMs, failure: 'the sweep of files failed' },
      work: (signal) => this.sweepFilesIfDue(signal),
    });
  }

  /**
   * Sweeps the files if no worker has been up for longer and this process has not tried within the interval. So a
   * worker that becomes the eldest sweeps at once.
   * @returns whether it did
   */
  async sweepFilesIfDue(signal?: AbortSignal): Promise<boolean> {
    const now = performance.now();
    if (now - this.filesSweptAt < fileIntervalMs || !(await this.presence.isEldest())) return false;
    this.filesSweptAt = now;
    return (
      (await underSessionLock(this.dataSource, fileSweepLock, async () => {
        await this.files.sweep(undefined, signal);
        return true;
      })) ?? false
    );
  }
}
