import { RecurringService } from '@app/process';
import { JsonLogger } from '@app/observability';
import { collectionRecordBytes, finetuneRecordBytes, type StoredBytes } from '@app/tasks';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { UploadsService } from './uploads.service';

const intervalMs = 10 * 60_000;
/** Each key is recounted once in this time; the second number is how many in one round. */
const recountHours = 24;
const mostKeys = 500;

/** The keys not compared for longest. Parameters: the hours between comparisons, and how many keys. */
const dueStatement = `
SELECT caller.id FROM api_keys caller LEFT JOIN storage_use stored ON stored.owner_id = caller.id
WHERE stored.counted_at IS NULL OR stored.counted_at < now() - $1 * interval '1 hour'
ORDER BY stored.counted_at NULLS FIRST LIMIT $2`;

/** Locks an owner's count. Parameter: the owner. */
const lockStatement = `
INSERT INTO storage_use AS stored (owner_id) VALUES ($1)
ON CONFLICT (owner_id) DO UPDATE SET owner_id = excluded.owner_id RETURNING picture_bytes, weight_bytes, reserved_bytes, record_bytes`;

/** Counts an owner's files anew. Parameter: the owner. */
const countStatement = `
UPDATE storage_use SET counted_at = now(),
  picture_bytes = (SELECT coalesce(sum(picture_bytes), 0) FROM tasks WHERE owner_id = $1 AND completed_at IS NOT NULL)
    + (SELECT coalesce(sum(bytes), 0) FROM uploaded_pictures WHERE owner_id = $1),
  weight_bytes = (SELECT coalesce(sum(weights_bytes), 0) FROM finetunes WHERE owner_id = $1),
  reserved_bytes = (SELECT coalesce(sum(reserved_bytes), 0) FROM tasks WHERE owner_id = $1),
  record_bytes = (SELECT coalesce(sum(record_bytes), 0) FROM tasks WHERE owner_id = $1)
    + (SELECT coalesce(sum(record_bytes), 0) FROM styles WHERE owner_id = $1)
    + (SELECT count(*) * ${finetuneRecordBytes} FROM finetunes WHERE owner_id = $1)
    + (SELECT count(*) * ${collectionRecordBytes} FROM collections WHERE owner_id = $1)
WHERE owner_id = $1 RETURNING picture_bytes, weight_bytes, reserved_bytes, record_bytes`;

/** Compares the storage counts of keys with the rows of their files: a wrong count is corrected within a day. */
@Injectable()
export class StorageUseSweeper extends RecurringService {
  constructor(
    private readonly dataSource: DataSource,
    private readonly uploads: UploadsService,
    logger: JsonLogger,
  ) {
    super(logger);
    this.repeat({
      intervalMs,
      failure: 'sweep of storage counts failed',
      work: (signal) => this.sweep(undefined, signal),
    });
  }

  /** @returns how many counts were wrong. */
  async sweep(agoHours = recountHours, signal?: AbortSignal): Promise<number> {
    await this.uploads.removeDead();
    let wrong = 0;
    for (const { id } of await this.dataSource.query<{ id: string }[]>(dueStatement, [agoHours, mostKeys])) {
      if (signal?.aborted) break;
      try {
        wrong += Number(await this.recount(id));
      } catch (error) {
        this.logger.warn('stored bytes could not be counted', { keyId: id, reason: (error as Error).message });
      }
    }
    if (wrong > 0) this.logger.warn('counts of stored bytes were wrong', { keys: wrong });
    return wrong;
  }

  /**
   * A transaction that adds or removes files changes the count last. So while the count is locked, committed rows are
   * in it, and all others will be added to it.
   * @returns whether the count was wrong.
   */
  private recount(ownerId: string): Promise<boolean> {
    return this.dataSource.transaction(async (manager) => {
      const [held] = await manager.query<[StoredBytes]>(lockStatement, [ownerId]);
      const [[counted]] = await manager.query<[[StoredBytes], number]>(countStatement, [ownerId]);
      return Object.entries(held).some(([name, bytes]) => counted[name as keyof StoredBytes] !== bytes);
    });
  }
}
