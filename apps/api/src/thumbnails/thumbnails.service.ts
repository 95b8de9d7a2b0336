import { newIdentifier, Style } from '@app/domain';
import { IMAGE_STORAGE } from '@app/foundation';
import { JsonLogger } from '@app/observability';
import { afterCommit } from '@app/queue';
import type { ImageStorage } from '@app/storage';
import { Inject, Injectable } from '@nestjs/common';
import { DataSource, IsNull } from 'typeorm';
import { PicturesService } from '../pictures/pictures.service';
import { FairTurns } from '../work/fair-turns';
import { WorkError } from '../work/work-process';
import type { Drawable, Source } from './missing-thumbnails';
import { drawableOf, MissingThumbnails } from './missing-thumbnails';

/** Prefix of thumbnails in the storage. */
export const thumbnailFolder = 'thumbnails';

/** How long a request that creates Styles waits for their thumbnails; the sweeper makes the others. */
const patienceMs = 2000;
/** How long a request that deletes Prompts waits; the sweeper has usually made their thumbnails long before. */
const deletionPatienceMs = 10_000;
/** Longer than a thumbnail takes: a process with an older claim is gone. */
const claimMs = 5 * 60_000;
/** Styles of a deleted or drawn Prompt per query. */
const styleBatch = 100;
/** Prompts whose picture is still to come that this process remembers; the sweeper finds the others. */
const mostAwaited = 10_000;
/** Thumbnails in parallel: while the file of one is fetched or stored, the other is drawn. */
const concurrency = 2;

/** Key of a Style's thumbnail. */
export function thumbnailKeyOf(styleId: string): string {
  return `${thumbnailFolder}/${styleId}.png`;
}

/**
 * Makes the thumbnails of Styles from the first picture of their Prompts. The key depends only on the Style, so an interrupted
 * write is overwritten, and two processes that make the same thumbnail write the same. No row is locked while a picture is read
 * or written.
 */
@Injectable()
export class ThumbnailsService {
  private readonly turns = new FairTurns({ concurrency, perKey: 100, total: 1000 });
  private readonly missing = new MissingThumbnails();
  /** The owners of Prompts that Styles were made from at this process, before they had a picture. */
  private readonly awaited = new Map<string, string>();

  constructor(
    private readonly dataSource: DataSource,
    @Inject(IMAGE_STORAGE) private readonly storage: ImageStorage,
    private readonly pictures: PicturesService,
    private readonly logger: JsonLogger,
  ) {}

  /**
   * Called right after Styles are committed: makes the thumbnails of those whose Prompt has a picture, and remembers the other
   * Prompts for `makeDrawn`. It never fails the request; inside an enclosing transaction the response was already written
   * without them.
   */
  makeNew(styleIds: readonly string[]): Promise<void> {
    return afterCommit(() => this.makeCommitted(styleIds));
  }

  /**
   * Called before Prompts are deleted, and before that transaction: makes the thumbnails of all Styles made from them. A
   * thumbnail that cannot be made in time stays null for good.
   */
  async makeFor(sources: readonly Source[], forMs = deletionPatienceMs): Promise<void> {
    const deadline = Date.now() + forMs;
    const wanted = sources.map((source) => ({ ...source, most: styleBatch }));
    const attempted = new Set<string>();
    for (;;) {
      const styles = await drawableOf(this.dataSource.manager, wanted, styleBatch);
      const remaining = styles.filter(({ id }) => !attempted.has(id));
      if (remaining.length === 0) return;
      for (const { id } of remaining) {
        if (Date.now() >= deadline)
          return this.logger.warn('thumbnails of deleted Prompts were not made in time', { made: attempted.size });
        attempted.add(id);
        await this.make(id, 'whoever makes it');
      }
    }
  }

  /** Called when a Prompt has changed: makes the thumbnails that have waited for its picture. It never throws. */
  async makeDrawn(promptId: string): Promise<void> {
    const ownerId = this.awaited.get(promptId);
    if (ownerId === undefined) return;
    try {
      const source = { ownerId, promptId, most: styleBatch };
      const styles = await drawableOf(this.dataSource.manager, [source], styleBatch);
      if (styles.length > 0) this.awaited.delete(promptId);
      for (const { id } of styles) await this.turns.run(ownerId, () => this.make(id));
    } catch (error) {
      this.leave(error as Error);
    }
  }

  /**
   * One round of making thumbnails whose picture now exists, in parallel with other processes.
   * @returns how many this call made.
   */
  async makeMissing(): Promise<number> {
    let made = 0;
    for (const { id, ownerId } of await this.missing.next(this.dataSource.manager))
      await this.turns.run(ownerId, async () => {
        made += Number(await this.make(id));
      });
    return made;
  }

  private async makeCommitted(styleIds: readonly string[]): Promise<void> {
    const deadline = Date.now() + patienceMs;
    try {
      // First, so that a picture that comes between the two statements is seen by the second.
      await this.awaitThose(styleIds);
      for (const { id, ownerId } of await this.drawableAmong(styleIds)) {
        if (Date.now() > deadline) return;
        await this.turns.run(ownerId, async () => {
          if (Date.now() <= deadline) await this.make(id);
        });
      }
    } catch (error) {
      this.leave(error as Error);
    }
  }

  private leave({ message }: Error): void {
    this.logger.warn('thumbnails are left for the sweeper', { reason: message });
  }

  /** Remembers the Prompts of Styles that have no picture yet, in place of the oldest ones. */
  private async awaitThose(styleIds: readonly string[]): Promise<void> {
    const sources = await this.dataSource.query<Source[]>(
      `SELECT DISTINCT owner_id AS "ownerId", source_prompt_id AS "promptId" FROM styles
       WHERE id = ANY($1) AND source_prompt_id IS NOT NULL
         AND NOT EXISTS (SELECT FROM images WHERE task_id = source_prompt_id)`,
      [styleIds],
    );
    for (const { ownerId, promptId } of sources) this.awaited.set(promptId, ownerId);
    for (const [oldest] of this.awaited) {
      if (this.awaited.size <= mostAwaited) return;
      this.awaited.delete(oldest);
    }
  }

  /**
   * Nothing is locked while the picture is drawn and stored: a process claims a thumbnail, and the claim expires.
   * @returns whether this call gave the Style its thumbnail.
   */
  private async make(
    styleId: string,
    when: 'nobody makes it' | 'whoever makes it' = 'nobody makes it',
  ): Promise<boolean> {
    const { manager } = this.dataSource;
    const [[source]] = await manager.query<[{ storage_key: string; owner_id: string }[], number]>(
      `UPDATE styles SET thumbnail_claimed_at = now() FROM images image
       WHERE styles.id = $1 AND thumbnail_key IS NULL AND image.task_id = source_prompt_id AND image.index = 0
         AND ($2 OR thumbnail_claimed_at IS NULL OR thumbnail_claimed_at < now() - $3 * interval '1 ms')
       RETURNING image.storage_key, styles.owner_id`,
      [styleId, when === 'whoever makes it', claimMs],
    );
    if (!source) return false;
    const key = thumbnailKeyOf(styleId);
    const still = { id: styleId, thumbnailKey: IsNull() };
    try {
      await this.storage.write(key, await this.draw(source.owner_id, source.storage_key));
    } catch (error) {
      const lost = error instanceof LostPictureError;
      this.logger.warn('thumbnail could not be made', { styleId, reason: (error as Error).message, again: !lost });
      await manager.update(Style, still, { thumbnailClaimedAt: null, ...(lost && { sourcePromptId: null }) });
      return false;
    }
    const { affected } = await manager.update(Style, still, { thumbnailKey: key, thumbnailToken: newIdentifier() });
    if (affected) return true;
    // Another process was quicker, or the Style was deleted and nothing would remove its thumbnail.
    if (!(await manager.existsBy(Style, { id: styleId }))) await this.storage.removeAll(key);
    return false;
  }

  /** @throws LostPictureError for a picture that can never become a thumbnail. */
  private async draw(ownerId: string, storageKey: string): Promise<Uint8Array> {
    const path = (): Promise<string> => this.storage.localPath(storageKey);
    try {
      return await this.pictures.drawThumbnail(ownerId, storageKey, path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT')
        throw new LostPictureError(`There is no picture ${storageKey}.`);
      if (error instanceof WorkError && error.isOfTheWork)
        throw new LostPictureError(`${storageKey} cannot be read: ${error.message}`);
      throw error;
    }
  }

  /** The Styles without a thumbnail whose Prompt has a first picture. */
  private drawableAmong(styleIds: readonly string[]): Promise<Drawable[]> {
    return this.dataSource.query<Drawable[]>(
      `SELECT style.id, style.owner_id AS "ownerId" FROM styles style
       JOIN images image ON image.task_id = style.source_prompt_id AND image.index = 0
       WHERE style.id = ANY($1) AND style.thumbnail_key IS NULL ORDER BY style.seq`,
      [styleIds],
    );
  }
}

/** The picture is lost for good. */
class LostPictureError extends Error {}
