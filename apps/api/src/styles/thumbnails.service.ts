import { newIdentifier, Style } from '@app/domain';
import { JsonLogger } from '@app/logging';
import type { ImageStorage } from '@app/storage';
import { Inject, Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { DataSource } from 'typeorm';
import { PicturesService } from '../pictures/pictures.service';
import { IMAGE_STORAGE } from '../storage.token';
import { FairTurns } from '../work/fair-turns';
import { WorkError } from '../work/work-process';

/** Where thumbnails lie in the storage. */
export const thumbnailFolder = 'thumbnails';

/** A request that creates Styles waits this long for their thumbnails; the sweeper makes the others. */
const patienceMs = 2000;
/** Styles that one round of the sweeper looks at. */
const roundSize = 200;
/** Thumbnails that are made at a time. */
const concurrency = 2;

/** Key of a Style's thumbnail. */
export function thumbnailKeyOf(styleId: string): string {
  return `${thumbnailFolder}/${styleId}.png`;
}

/**
 * Makes the thumbnails of Styles from the first picture of their Prompts. The key follows from the Style, so that one
 * cut short is written over, and the row is locked meanwhile, so that each is made once.
 */
@Injectable()
export class ThumbnailsService {
  private readonly turns = new FairTurns({ concurrency, perKey: 100, total: 1000 });

  constructor(
    private readonly dataSource: DataSource,
    @Inject(IMAGE_STORAGE) private readonly storage: ImageStorage,
    private readonly pictures: PicturesService,
    private readonly logger: JsonLogger,
  ) {}

  /** Right after Styles are committed, those whose Prompt has a picture. Never fails the request. */
  async makeNew(styleIds: readonly string[]): Promise<void> {
    const deadline = Date.now() + patienceMs;
    try {
      for (const style of await drawable(this.dataSource.manager, 'style.id = ANY($1)', [styleIds])) {
        if (Date.now() > deadline) return;
        await this.turns.run(style.ownerId, async () => {
          if (Date.now() <= deadline) await this.makeAlone(style, 'wait');
        });
      }
    } catch (error) {
      this.logger.warn('thumbnails are left for the sweeper', { reason: (error as Error).message });
    }
  }

  /**
   * Before Prompts are deleted, inside the transaction that deletes them and has locked their rows: the thumbnails of
   * all Styles made from them. One that cannot be made stays null for good.
   */
  async makeFor(manager: EntityManager, promptIds: readonly string[]): Promise<void> {
    for (const style of await drawable(manager, 'style.source_prompt_id = ANY($1)', [promptIds]))
      await this.make(manager, style, 'wait', this.draw(style));
  }

  /**
   * Makes thumbnails whose picture has come since, beside other processes that do the same.
   * @returns how many this call made.
   */
  async makeMissing(): Promise<number> {
    await this.giveUpOnMissing();
    let made = 0;
    for (const style of await drawable(this.dataSource.manager, 'true', [], roundSize))
      made += Number(await this.turns.run(style.ownerId, () => this.makeAlone(style, 'skip')));
    return made;
  }

  /** Nothing is locked, and no connection held, while the picture is drawn. */
  private async makeAlone(style: Drawable, whenLocked: 'wait' | 'skip'): Promise<boolean> {
    const drawn = this.draw(style);
    await Promise.allSettled([drawn]);
    return this.dataSource.transaction((manager) => this.make(manager, style, whenLocked, drawn));
  }

  /**
   * @param drawn its thumbnail.
   * @returns whether the Style has got it from this call.
   */
  private async make(
    manager: EntityManager,
    { id: styleId }: Drawable,
    whenLocked: 'wait' | 'skip',
    drawn: Promise<Uint8Array>,
  ): Promise<boolean> {
    // It may be made for nothing, where another process was faster.
    drawn.catch(() => undefined);
    const [source] = await manager.query<unknown[]>(
      `SELECT style.id ${fromDrawable} AND style.id = $1
       FOR UPDATE OF style ${whenLocked === 'skip' ? 'SKIP LOCKED' : ''}`,
      [styleId],
    );
    if (!source) return false;
    const key = thumbnailKeyOf(styleId);
    try {
      await this.storage.write(key, await drawn);
    } catch (error) {
      const lost = error instanceof LostPictureError;
      this.logger.warn('thumbnail could not be made', { styleId, reason: (error as Error).message, again: !lost });
      if (lost) await manager.update(Style, { id: styleId }, { sourcePromptId: null });
      return false;
    }
    await manager.update(Style, { id: styleId }, { thumbnailKey: key, thumbnailToken: newIdentifier() });
    return true;
  }

  /** @throws LostPictureError for a picture that no thumbnail can be made of, now or later. */
  private async draw({ ownerId, storageKey }: Drawable): Promise<Uint8Array> {
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

  /** Keeps the list of missing ones short: a Prompt that is gone, or ended without a picture, will never have one. */
  private async giveUpOnMissing(): Promise<void> {
    await this.dataSource.query(
      `UPDATE styles SET source_prompt_id = NULL
       WHERE source_prompt_id IS NOT NULL AND thumbnail_key IS NULL
         AND NOT EXISTS (
           SELECT FROM image_tasks task WHERE task.id = styles.source_prompt_id
             AND (task.status IN ('queued', 'processing') OR EXISTS (SELECT FROM images WHERE task_id = task.id)))`,
    );
  }
}

/** A Style that has no thumbnail yet, and the picture that it is to be made from. */
interface Drawable {
  id: string;
  ownerId: string;
  storageKey: string;
}

/** The picture will not come back. */
class LostPictureError extends Error {}

/** Styles without a thumbnail whose Prompt has a first picture. */
const fromDrawable = `FROM styles style
  JOIN images image ON image.task_id = style.source_prompt_id AND image.index = 0
  WHERE style.source_prompt_id IS NOT NULL AND style.thumbnail_key IS NULL`;

async function drawable(
  manager: EntityManager,
  condition: string,
  parameters: unknown[],
  limit?: number,
): Promise<Drawable[]> {
  return manager.query<Drawable[]>(
    `SELECT style.id, style.owner_id AS "ownerId", image.storage_key AS "storageKey" ${fromDrawable} AND ${condition} ORDER BY style.seq ${limit ? `LIMIT ${limit}` : ''}`,
    parameters,
  );
}
