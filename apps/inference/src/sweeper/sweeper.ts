import { JsonLogger } from '@app/logging';
import type { BeforeApplicationShutdown, OnApplicationBootstrap } from '@nestjs/common';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { FileSweeper } from './file-sweeper';
import { TaskSweeper } from './task-sweeper';

const intervalMs = 10_000;
/** Listing a storage is dear, and what it finds is in nobody's way. */
const fileSweepIntervalMs = 15 * 60_000;

/** Advisory lock under which one of all processes sweeps: "SWEP" in ASCII. */
export const sweepLock = 0x53574550;

/** Sweeps at intervals with some jitter, in one process at a time. */
@Injectable()
export class Sweeper implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private timer?: NodeJS.Timeout;
  private running: Promise<unknown> = Promise.resolve();
  private filesSweptAt = -Infinity;
  private stopped = false;

  constructor(
    private readonly dataSource: DataSource,
    private readonly tasks: TaskSweeper,
    private readonly files: FileSweeper,
    private readonly logger: JsonLogger,
  ) {}

  onApplicationBootstrap(): void {
    this.schedule();
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.stopped = true;
    clearTimeout(this.timer);
    await this.running;
  }

  /** Sweeps now, unless another process does. @returns whether it did */
  async sweep(): Promise<boolean> {
    const session = this.dataSource.createQueryRunner();
    try {
      const [{ locked }] = (await session.query('SELECT pg_try_advisory_lock($1) AS locked', [sweepLock])) as [
        { locked: boolean },
      ];
      if (!locked) return false;
      try {
        await this.tasks.sweep();
        if (performance.now() - this.filesSweptAt >= fileSweepIntervalMs) {
          await this.files.sweep();
          this.filesSweptAt = performance.now();
        }
        return true;
      } finally {
        await session.query('SELECT pg_advisory_unlock($1)', [sweepLock]);
      }
    } finally {
      await session.release();
    }
  }

  private schedule(): void {
    if (this.stopped) return;
    this.timer = setTimeout(
      () => {
        this.running = this.sweep()
          .catch((error: Error) => this.logger.warn('the sweep failed', { reason: error.message }))
          .finally(() => this.schedule());
      },
      intervalMs * (0.75 + Math.random() / 2),
    );
    this.timer.unref();
  }
}
