import { IMAGE_STORAGE, type ImageStorage } from '@app/storage';
import { styleThumbnailsFolder } from '@app/tasks';
import { JsonLogger } from '@app/observability';
import { Inject, Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';

/** A newer file without a row may belong to an upload that is about to write it. */
const strayFileAfterMs = 3_600_000;
const batchSize = 500;

/**
 * Removes the files of deleted rows, after the commit. It never fails the request: the sweepers remove what a failure
 * leaves behind.
 */
@Injectable()
export class StoredFiles {
  constructor(
    private readonly dataSource: DataSource,
    @Inject(IMAGE_STORAGE) private readonly storage: ImageStorage,
    private readonly logger: JsonLogger,
  ) {}

  /** The files of a folder that are too old for an upload that has yet to write its row. */
  async oldFilesIn(folder: string, now: number): Promise<string[]> {
    const old: string[] = [];
    for await (const { key, modifiedAt } of this.storage.list(folder))
      if (now - modifiedAt.getTime() > strayFileAfterMs) old.push(key);
    return old;
  }

  /** Removes what a crash left in a folder: old files that no row names. @returns how many */
  async removeStray(
    folder: string,
    { table, column, now, signal }: { table: string; column: string; now: number; signal?: AbortSignal | undefined },
  ): Promise<number> {
    const old = await this.oldFilesIn(folder, now);
    let removed = 0;
    for (let start = 0; start < old.length && !signal?.aborted; start += batchSize) {
      const stray = await this.dataSource.query<{ key: string }[]>(
        `SELECT key FROM unnest($1::text[]) AS key WHERE NOT EXISTS (SELECT FROM ${table} WHERE ${column} = key)`,
        [old.slice(start, start + batchSize)],
      );
      await this.removeAll(stray.map(({ key }) => key));
      removed += stray.length;
    }
    return removed;
  }

  async removeAll(prefixes: readonly string[]): Promise<void> {
    for (const prefix of prefixes)
      await this.storage
        .removeAll(prefix)
        .catch((error: Error) =>
          this.logger.warn('files were left for the sweeper', { prefix, reason: error.message }),
        );
  }

  /** Removes the pictures of deleted tasks, and the thumbnails that no Style needs. */
  async removeTasks(taskIds: readonly string[]): Promise<void> {
    await this.removeAll(taskIds);
    await this.removeStyleThumbnails(taskIds);
  }

  /** Removes thumbnails of which the Prompt and all Styles made from it are deleted. */
  async removeStyleThumbnails(promptIds: readonly (string | null)[]): Promise<void> {
    const unneeded = await this.dataSource
      .query<{ id: string }[]>(
        `SELECT DISTINCT source.id FROM unnest($1::varchar[]) AS source (id)
         WHERE source.id IS NOT NULL AND NOT EXISTS (SELECT FROM finetune_prompts WHERE id = source.id)
           AND NOT EXISTS (SELECT FROM styles WHERE source_prompt_id = source.id)`,
        [promptIds],
      )
      .catch((error: Error) => {
        this.logger.warn('thumbnails were left for the sweeper', { reason: error.message });
        return [];
      });
    await this.removeAll(unneeded.map(({ id }) => styleThumbnailsFolder(id)));
  }
}
