import { underSessionLock } from '@app/database';
import { RecurringService } from '@app/process';
import { JsonLogger } from '@app/observability';
import { Inject, Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { WorkerPresence } from '../health/worker-presence';
import { FileSweeper } from './file-sweeper';
import { TaskSweeper } from './task-sweeper';

const taskIntervalMs = 10_000;
/** Listing a storage is expensive, and orphaned files do little harm: a process does it once in this time. */
const fileIntervalMs = 15 * 60_000;
/** How often it looks whether that is due: workers that are restarted every ten minutes have to do it too. */
const fileCheckMs = 60_000;

/** Advisory lock that lets one process at a time sweep tasks: "SWEP" in ASCII. */
export const taskSweepLock = 0x53574550;
/** The same for files: "SWEF". Listing a large storage takes long, and the tasks do not wait for it. */
export const fileSweepLock = 0x53574546;

/** Sweeps tasks and files, each at slightly irregular intervals and in one process at a time. */
@Injectable()
export class Sweeper extends RecurringService {
  private filesSweptAt = -Infinity;

  constructor(
    private readonly dataSource: DataSource,
    private readonly tasks: TaskSweeper,
    private readonly files: FileSweeper,
    @Inject(WorkerPresence) private readonly presence: Pick<WorkerPresence, 'isEldest'>,
    logger: JsonLogger,
  ) {
    super(logger);
    this.repeat({
      ...{ intervalMs: taskIntervalMs, failure: 'the sweep of tasks failed' },
      work: (signal) => this.sweepTasks(signal),
    });
    this.repeat({
      ...{ intervalMs: fileCheckMs, failure: 'the sweep of files failed' },
      work: (signal) => this.sweepFilesIfDue(signal),
    });
  }

  /** Sweeps the tasks now, unless another process is at it. @returns whether it did */
  sweepTasks(signal?: AbortSignal): Promise<boolean> {
    return this.alone(taskSweepLock, () => this.tasks.sweep(signal));
  }

  /**
   * Sweeps the files if this process has not tried to within the interval, and no worker has been up for longer: the
   * eldest worker lists the storage when that falls to it, and then once in the interval.
   * @returns whether it did
   */
  async sweepFilesIfDue(signal?: AbortSignal): Promise<boolean> {
    const now = performance.now();
    if (now - this.filesSweptAt < fileIntervalMs || !(await this.presence.isEldest())) return false;
    this.filesSweptAt = now;
    return this.alone(fileSweepLock, () => this.files.sweep(undefined, signal));
  }

  private async alone(lock: number, sweep: () => Promise<unknown>): Promise<boolean> {
    return (await underSessionLock(this.dataSource, lock, async () => (await sweep(), true))) ?? false;
  }
}
