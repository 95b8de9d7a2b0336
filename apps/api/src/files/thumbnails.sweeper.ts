import { isIdentifier } from '@app/domain';
import { databaseNow, underSessionLock } from '@app/database';
import { IMAGE_STORAGE } from '@app/storage';
import { RecurringService } from '@app/process';
import { JsonLogger } from '@app/observability';
import type { ImageStorage } from '@app/storage';
import { Inject, Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { DataSource } from 'typeorm';
import { thumbnailFolder, thumbnailKeyOf, ThumbnailsService } from './thumbnails.service';

const missingEveryMs = 3000;
const straysEveryMs = 3_600_000;

/** A newer object may belong to a row that is about to be written. */
const strayFileAfterMs = 3_600_000;
/** Advisory lock that lets one process at a time remove strays: "STRA" in ASCII. */
const strayLock = 0x53545241;
const batchSize = 500;

/** Makes thumbnails that had to wait for a picture, and removes those that have lost their Style. */
@Injectable()
export class ThumbnailsSweeper extends RecurringService {
  constructor(
    private readonly thumbnails: ThumbnailsService,
    private readonly dataSource: DataSource,
    @Inject(IMAGE_STORAGE) private readonly storage: ImageStorage,
    logger: JsonLogger,
  ) {
    super(logger);
    this.sweep('thumbnails', missingEveryMs, (signal) => this.thumbnails.makeMissing(signal));
    this.sweep('stray thumbnails', straysEveryMs, (signal) => this.removeStrays(undefined, signal));
  }

  /**
   * Removes thumbnails without a Style, which a crash between a deletion's commit and its files leaves behind. One
   * process at a time does it.
   * @param at milliseconds since the epoch; by default the database's time, because the machine's clock may be wrong.
   * @returns how many; 0 while another process is doing it.
   */
  async removeStrays(at?: number, signal?: AbortSignal): Promise<number> {
    const removed = await underSessionLock(this.dataSource, strayLock, async () =>
      this.removeOlder(at ?? (await databaseNow(this.dataSource)), signal),
    );
    return removed ?? 0;
  }

  private async removeOlder(now: number, signal?: AbortSignal): Promise<number> {
    let removed = 0;
    let old: string[] = [];
    const removeThose = async (): Promise<void> => {
      for (const key of await strays(this.dataSource.manager, old)) {
        await this.storage.removeAll(key);
        removed++;
      }
      old = [];
    };
    for await (const { key, modifiedAt } of this.storage.list(thumbnailFolder)) {
      if (signal?.aborted) return removed;
      if (now - modifiedAt.getTime() > strayFileAfterMs) old.push(key);
      if (old.length === batchSize) await removeThose();
    }
    await removeThose();
    return removed;
  }

  /** @param work returns how many it swept. */
  private sweep(what: string, intervalMs: number, work: (signal: AbortSignal) => Promise<number>): void {
    this.repeat({
      intervalMs,
      failure: `sweep of ${what} failed`,
      work: async (signal) => {
        const count = await work(signal);
        if (count > 0) this.logger.log(`${what} swept`, { count });
      },
    });
  }
}

/** Which of these keys are thumbnails of no Style: there is no such Style, or the file was never finished. */
async function strays(manager: EntityManager, keys: readonly string[]): Promise<string[]> {
  const ids = keys.map((key) => key.slice(thumbnailFolder.length + 1).replace(/\.png$/, '')).filter(isIdentifier);
  const rows = await manager.query<{ id: string }[]>('SELECT id FROM styles WHERE id = ANY($1)', [ids]);
  const known = new Set(rows.map(({ id }) => thumbnailKeyOf(id)));
  return keys.filter((key) => !known.has(key));
}
