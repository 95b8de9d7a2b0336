import { databaseNow } from '@app/database';
import { FinetunePrompt, Image, Task, Style } from '@app/domain';
import { IMAGE_STORAGE, type ImageStorage } from '@app/storage';
import { attemptFolder, attemptOf, styleThumbnailFolder } from '@app/tasks';
import { JsonLogger } from '@app/observability';
import { Inject, Injectable } from '@nestjs/common';
import { DataSource, In, IsNull, Not } from 'typeorm';

/** Younger files may belong to a transaction that is about to commit. */
const graceMs = 10 * 60_000;
/** Folders per query for their rows. */
const batch = 500;

/** Removes the pictures and thumbnails of failed attempts and of deleted tasks. */
@Injectable()
export class FileSweeper {
  constructor(
    @Inject(IMAGE_STORAGE) private readonly storage: ImageStorage,
    private readonly dataSource: DataSource,
    private readonly logger: JsonLogger,
  ) {}

  /**
   * @param at milliseconds since the epoch; by default the database's time, because a machine with a
   * wrong clock may sweep too
   * @returns how many folders were removed
   */
  async sweep(at?: number, signal?: AbortSignal): Promise<number> {
    const now = at ?? (await databaseNow(this.dataSource));
    const folders = new Map<string, string>();
    let removed = 0;
    for await (const { key, modifiedAt } of this.storage.list()) {
      if (signal?.aborted) return removed;
      const attempt = attemptOf(key);
      if (!attempt || now - modifiedAt.getTime() < graceMs) continue;
      folders.set(attempt.folder, attempt.id);
      if (folders.size < batch) continue;
      removed += await this.removeOrphans(folders);
      folders.clear();
    }
    removed += await this.removeOrphans(folders);
    if (removed > 0) this.logger.log('files without a row were removed', { folders: removed });
    return removed;
  }

  /** @param taskIds by folder */
  private async removeOrphans(taskIds: ReadonlyMap<string, string>): Promise<number> {
    if (taskIds.size === 0) return 0;
    const ids = [...new Set(taskIds.values())];
    const { manager } = this.dataSource;
    // In this order: a picture that was just being drawn has its rows by now.
    const tasks = await manager.find(Task, {
      select: { id: true, attempt: true },
      where: { id: In(ids), status: 'processing' },
    });
    const images = await manager.find(Image, { select: { id: true, storageKey: true }, where: { taskId: In(ids) } });
    const thumbnailKey = Not(IsNull());
    const prompts = await manager.findBy(FinetunePrompt, { id: In(ids), thumbnailKey });
    const styles = await manager.findBy(Style, { sourcePromptId: In(ids), thumbnailKey });
    const keys = [
      ...images.map(({ storageKey }) => storageKey),
      ...[...prompts, ...styles].map((row) => row.thumbnailKey!),
    ];
    const kept = new Set([
      ...keys.map((key) => attemptOf(key)?.folder),
      // A task being drawn has files before it has rows, however long it takes.
      ...tasks.flatMap((task) => [attemptFolder(task), styleThumbnailFolder(task)]),
    ]);
    const orphans = [...taskIds.keys()].filter((folder) => !kept.has(folder));
    for (const folder of orphans) await this.storage.removeAll(folder);
    return orphans.length;
  }
}
