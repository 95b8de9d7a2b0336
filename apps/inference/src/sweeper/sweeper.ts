import { JsonLogger } from '@app/observability';
import { Recurring } from '@app/process';
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
  private readonly rounds: Recurring;
  private filesSweptAt = -Infinity;

  constructor(
    private readonly dataSource: DataSource,
    private readonly tasks: TaskSweeper,
    private readonly files: FileSweeper,
    private readonly logger: JsonLogger,
  ) {
    this.rounds = new Recurring({
      intervalMs,
      work: (signal) => this.sweep(signal),
      onError: ({ message }) => this.logger.warnSparingly('the sweep failed', { reason: message }),
    });
  }

  onApplicationBootstrap(): void {
    this.rounds.start();
  }

  /** Ends before the database connection does. */
  beforeApplicationShutdown(): Promise<void> {
    return this.rounds.stop();
  }

  /** Sweeps now, unless another process does. @returns whether it did */
  async sweep(signal?: AbortSignal): Promise<boolean> {
    const session = this.dataSource.createQueryRunner();
    try {
      const [{ locked }] = (await session.query('SELECT pg_try_advisory_lock($1) AS locked', [sweepLock])) as [
        { locked: boolean },
      ];
      if (!locked) return false;
      try {
        await this.tasks.sweep(signal);
        if (!signal?.aborted && performance.now() - this.filesSweptAt >= fileSweepIntervalMs) {
          await this.files.sweep(undefined, signal);
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
}
