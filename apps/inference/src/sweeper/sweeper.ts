import { underSessionLock } from '@app/database';
import { RecurringService } from '@app/foundation';
import { JsonLogger } from '@app/observability';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { FileSweeper } from './file-sweeper';
import { TaskSweeper } from './task-sweeper';

const intervalMs = 10_000;
/** Listing a storage is expensive, and orphaned files do little harm. */
const fileSweepIntervalMs = 15 * 60_000;

/** Advisory lock that lets one process at a time sweep: "SWEP" in ASCII. */
export const sweepLock = 0x53574550;

/** Sweeps at slightly irregular intervals, in one process at a time. */
@Injectable()
export class Sweeper extends RecurringService {
  private filesSweptAt = -Infinity;

  constructor(
    private readonly dataSource: DataSource,
    private readonly tasks: TaskSweeper,
    private readonly files: FileSweeper,
    logger: JsonLogger,
  ) {
    super(logger);
    this.repeat({ intervalMs, failure: 'the sweep failed', work: (signal) => this.sweep(signal) });
  }

  /** Sweeps now, unless another process is sweeping. @returns whether it did */
  async sweep(signal?: AbortSignal): Promise<boolean> {
    const swept = await underSessionLock(this.dataSource, sweepLock, async () => {
      await this.tasks.sweep(signal);
      if (!signal?.aborted && performance.now() - this.filesSweptAt >= fileSweepIntervalMs) {
        await this.files.sweep(undefined, signal);
        this.filesSweptAt = performance.now();
      }
      return true;
    });
    return swept ?? false;
  }
}
