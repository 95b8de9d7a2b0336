import { ImageTask, newIdentifier, Style, terminatedStatuses } from '@app/domain';
import { IMAGE_STORAGE } from '@app/storage';
import { JsonLogger } from '@app/observability';
import { FairTurns, TurnsFullError } from '@app/process';
import { afterCommit } from '@app/queue';
import type { ImageStorage } from '@app/storage';
import { Inject, Injectable } from '@nestjs/common';
import { DataSource, In, IsNull, Not } from 'typeorm';
import { PicturesService } from './pictures.service';
import { WorkError } from '../http/work-process';
import { AwaitedPrompts } from './awaited-prompts';
import type { Drawable, Source } from './missing-thumbnails';
import { drawableOf, MissingThumbnails } from './missing-thumbnails';
import { drawnAmong, stylesOf } from './prompt-styles';

/** Prefix of thumbnails in the storage. */
export const thumbnailFolder = 'thumbnails';

/** How long a request that creates Styles waits for their thumbnails; the sweeper makes the others. */
const patienceMs = 2000;
/** How long a request that deletes Prompts waits; the sweeper has usually made their thumbnails long before. */
const deletionPatienceMs = 10_000;
/** Longer than a thumbnail takes: a process with an older claim is gone. */
const claimMs = 5 * 60_000;
/** Styles of a drawn Prompt that get their thumbnails before the sweeper's turn. */
const styleBatch = 100;
/**
 * Thumbnails of all callers at a time, who each make one after the other: while the file of one is fetched or
 * stored, the other is drawn.
 */
const concurrency = 2;
/** Drawn Prompts at a time, in all and of one key, whose Styles are read and get their thumbnails. */
const drawnConcurrency = { concurrency: 4, keyConcurrency: 2 };

/** Key of a Style's thumbnail. */
export function thumbnailKeyOf(styleId: string): string {
  return `${thumbnailFolder}/${styleId}.png`;
}

/**
 * Makes the thumbnails of Styles from the first picture of their Prompts: when Styles are made (`makeForStyles`), when
 * the picture comes (`makeForPrompt`), before Prompts are deleted (`makeBeforeDeletion`), and what these have left
 * (`makeMissing`). The key depends only on the Style, so an interrupted write is overwritten, and two processes that
 * make the same thumbnail write the same. No row is locked while a picture is read or written.
 */
@Injectable()
export class ThumbnailsService {
  private readonly turns = new FairTurns({ concurrency, perKey: 100, total: 1000 });
  private readonly drawn = new FairTurns({ ...drawnConcurrency, perKey: 100, total: 1000 });
  private readonly missing = new MissingThumbnails();
  private readonly awaited = new AwaitedPrompts();

  constructor(
    private readonly dataSource: DataSource,
    @Inject(IMAGE_STORAGE) private readonly storage: ImageStorage,
    private readonly pictures: PicturesService,
    private readonly logger: JsonLogger,
  ) {}

  /**
   * Called right after Styles are committed: makes the thumbnails of those whose Prompt has a picture, and remembers
   * the other Prompts for `makeForPrompt`. It never fails the request; inside an enclosing transaction the response was
   * already written without them.
   */
  makeForStyles(styleIds: readonly string[]): Promise<void> {
    return afterCommit(() => this.makeForCommitted(styleIds));
  }

  /**
   * Called before Prompts are deleted, and before that transaction: makes the thumbnails of all Styles made from them.
   * A thumbnail that cannot be made in time stays null for good.
   */
  async makeBeforeDeletion(sources: readonly Source[], forMs = deletionPatienceMs): Promise<void> {
    const deadline = Date.now() + forMs;
    const { manager } = this.dataSource;
    const count = { tried: 0, made: 0 };
    const isLate = (promptsLeft: number): boolean => {
      if (promptsLeft === 0 || Date.now() < deadline) return false;
      this.logger.warn('thumbnails of deleted Prompts were not made in time', { ...count, promptsLeft });
      return true;
    };
    for await (const { drawn, unread } of drawnAmong(manager, sources)) {
      if (isLate(drawn.length + unread)) return;
      for (const [place, source] of drawn.entries())
        for await (const id of stylesOf(manager, source)) {
          if (isLate(drawn.length - place + unread)) return;
          count.tried++;
          count.made += Number(await this.make(id, 'take over'));
        }
    }
  }

  /**
   * Called when a Prompt has changed: makes the thumbnails of the first 100 Styles that have waited for its picture;
   * the sweeper makes the others. It never throws.
   * @param signal ends it after the thumbnail that is being made.
   */
  async makeForPrompt(promptId: string, signal?: AbortSignal): Promise<void> {
    const ownerId = this.awaited.ownerOf(promptId);
    if (ownerId === undefined) return;
    try {
      await this.drawn.run(ownerId, () => this.makeForAwaited({ ownerId, promptId }, signal));
    } catch (error) {
      this.leave(error as Error);
    }
  }

  /**
   * One round of making thumbnails whose picture now exists, in parallel with other processes.
   * @param signal ends it after the thumbnail that is being made.
   * @returns how many this call made.
   */
  async makeMissing(signal?: AbortSignal): Promise<number> {
    let made = 0;
    for (const { id, ownerId } of await this.missing.next(this.dataSource.manager)) {
      if (signal?.aborted) break;
      try {
        await this.turns.run(ownerId, async () => {
          if (!signal?.aborted) made += Number(await this.make(id));
        });
      } catch (error) {
        // This owner has enough of them waiting for their turn; the others must not wait for it.
        if (!(error instanceof TurnsFullError)) throw error;
      }
    }
    return made;
  }

  private async makeForAwaited(source: Source, signal?: AbortSignal): Promise<void> {
    const { ownerId, promptId } = source;
    // By now an earlier notification may have been answered, or the process may be ending.
    if (signal?.aborted || this.awaited.ownerOf(promptId) === undefined) return;
    const { manager } = this.dataSource;
    // Read before its pictures: a Prompt that has terminated gets no more of them.
    const isOpen = await manager.existsBy(ImageTask, { id: promptId, status: Not(In([...terminatedStatuses])) });
    const styles = await drawableOf(manager, [{ ...source, most: styleBatch }], styleBatch);
    if (!isOpen || styles.length > 0) this.awaited.delete(promptId);
    for (const { id } of styles) {
      if (signal?.aborted) return;
      await this.turns.run(ownerId, async () => {
        if (!signal?.aborted) await this.make(id);
      });
    }
  }

  private async makeForCommitted(styleIds: readonly string[]): Promise<void> {
    const deadline = Date.now() + patienceMs;
    try {
      // First, so that a picture that comes between the two statements is seen by the second.
      await this.awaited.addThoseOf(this.dataSource.manager, styleIds);
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

  /**
   * Nothing is locked while the picture is drawn and stored: a process claims a thumbnail, and the claim expires.
   * @param claim whether another process may be making it.
   * @returns whether this call gave the Style its thumbnail.
   */
  private async make(styleId: string, claim: 'if free' | 'take over' = 'if free'): Promise<boolean> {
    const { manager } = this.dataSource;
    const [[source]] = await manager.query<[{ storage_key: string; owner_id: string }[], number]>(
      `UPDATE styles SET thumbnail_claimed_at = now() FROM images image
       WHERE styles.id = $1 AND thumbnail_key IS NULL AND image.task_id = source_prompt_id AND image.index = 0
         AND ($2 OR thumbnail_claimed_at IS NULL OR thumbnail_claimed_at < now() - $3 * interval '1 ms')
       RETURNING image.storage_key, styles.owner_id`,
      [styleId, claim === 'take over', claimMs],
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
