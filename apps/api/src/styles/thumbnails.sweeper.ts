import { isIdentifier } from '@app/domain';
import { JsonLogger } from '@app/logging';
import { databaseNow } from '@app/queue';
import type { ImageStorage } from '@app/storage';
import type { BeforeApplicationShutdown, OnApplicationBootstrap } from '@nestjs/common';
import { Inject, Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { DataSource } from 'typeorm';
import { IMAGE_STORAGE } from '../storage.token';
import { thumbnailFolder, thumbnailKeyOf, ThumbnailsService } from './thumbnails.service';

const missingEveryMs = 3000;
const straysEveryMs = 3_600_000;

/** An object younger than this may belong to a row that is about to be written. */
const strayAfterMs = 3_600_000;
/** Under which one process at a time removes strays: "STRA" in ASCII. */
const strayLock = 0x53545241;
const batchSize = 500;

/** Makes the thumbnails that had to wait for a picture, and removes those that have lost their Style. */
@Injectable()
export class ThumbnailsSweeper implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly timers: NodeJS.Timeout[] = [];
  private readonly running = new Map<string, Promise<void>>();

  constructor(
    private readonly thumbnails: ThumbnailsService,
    private readonly dataSource: DataSource,
    @Inject(IMAGE_STORAGE) private readonly storage: ImageStorage,
    private readonly logger: JsonLogger,
  ) {}

  onApplicationBootstrap(): void {
    this.every(missingEveryMs, 'thumbnails', () => this.thumbnails.makeMissing());
    this.every(straysEveryMs, 'stray thumbnails', () => this.removeStrays());
  }

  /** Ends before the database connection does. */
  async beforeApplicationShutdown(): Promise<void> {
    for (const timer of this.timers) clearInterval(timer);
    await Promise.all(this.running.values());
  }

  /**
   * Removes thumbnails without a Style: what a crash left between a deletion's commit and its files.
   * @param at milliseconds since the epoch; the database's time unless given, for the machine's clock may be wrong.
   * @returns how many; 0 while another process is at it.
   */
  removeStrays(at?: number): Promise<number> {
    return this.dataSource.transaction(async (manager) => {
      const [{ ours }] = await manager.query<{ ours: boolean }[]>('SELECT pg_try_advisory_xact_lock($1) AS ours', [
        strayLock,
      ]);
      if (!ours) return 0;
      const now = at ?? (await databaseNow(manager));
      const old: string[] = [];
      for await (const { key, modifiedAt } of this.storage.list(thumbnailFolder))
        if (now - modifiedAt.getTime() > strayAfterMs) old.push(key);
      let removed = 0;
      for (let start = 0; start < old.length; start += batchSize)
        for (const key of await strays(manager, old.slice(start, start + batchSize))) {
          await this.storage.removeAll(key);
          removed++;
        }
      return removed;
    });
  }

  private every(intervalMs: number, what: string, work: () => Promise<number>): void {
    const run = () => {
      // A round that takes longer than the interval is not joined by another.
      if (this.running.has(what)) return;
      const round = work()
        .then((count) => (count > 0 ? this.logger.log(`${what} swept`, { count }) : undefined))
        .catch((error: Error) => this.logger.warn(`sweep of ${what} failed`, { reason: error.message }))
        .finally(() => this.running.delete(what));
      this.running.set(what, round);
    };
    this.timers.push(setInterval(run, intervalMs).unref());
  }
}

/** Which of some keys are no Style's thumbnail: there is no such Style, or the file was never finished. */
async function strays(manager: EntityManager, keys: readonly string[]): Promise<string[]> {
  const ids = keys.map((key) => key.slice(thumbnailFolder.length + 1).replace(/\.png$/, '')).filter(isIdentifier);
  const rows = await manager.query<{ id: string }[]>('SELECT id FROM styles WHERE id = ANY($1)', [ids]);
  const known = new Set(rows.map(({ id }) => thumbnailKeyOf(id)));
  return keys.filter((key) => !known.has(key));
}
