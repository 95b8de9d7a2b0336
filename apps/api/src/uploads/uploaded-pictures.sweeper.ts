import { databaseNow, underSessionLock } from '@app/database';
import { uploadLifeHours } from '@app/domain';
import { JsonLogger } from '@app/observability';
import { RecurringService } from '@app/process';
import { Transactions } from '@app/queue';
import { addStored, forgetReplies } from '@app/tasks';
import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { StoredFiles } from '../files/stored-files';
import { uploadsFolder } from './uploaded-pictures.service';

const intervalMs = 10 * 60_000;
const batchSize = 200;
/** Advisory lock that lets one process at a time sweep: "SWEU" in ASCII. */
const uploadSweepLock = 0x53574555;

const unused = 'NOT EXISTS (SELECT FROM picture_uses WHERE upload_id = upload.id)';

/** Expired uploads that no record uses. Parameter: the time that they are older than. */
const lockStatement = `
SELECT id FROM uploaded_pictures upload WHERE created_at < $1 AND ${unused}
ORDER BY created_at FOR UPDATE SKIP LOCKED LIMIT ${batchSize}`;

/** The rows that name these files. */
const named = { table: 'uploaded_pictures', column: 'storage_key' };

/** A locked one may have got a use just before. Parameter: the ids. */
const deleteStatement = `
DELETE FROM uploaded_pictures upload WHERE id = ANY($1) AND ${unused}
RETURNING id, owner_id AS "ownerId", storage_key AS key, bytes`;

/** Deletes expired uploads, and files of uploads that a crash left without a row. */
@Injectable()
export class UploadedPicturesSweeper extends RecurringService {
  constructor(
    private readonly dataSource: DataSource,
    private readonly transactions: Transactions,
    private readonly files: StoredFiles,
    logger: JsonLogger,
  ) {
    super(logger);
    this.repeat({ intervalMs, failure: 'sweep of uploads failed', work: (signal) => this.sweep(undefined, signal) });
  }

  /**
   * @param at milliseconds since the epoch; by default the database's time, because the machine's clock may be wrong.
   * @returns how many uploads, and files without one, were removed; undefined while another process is doing it.
   */
  sweep(at?: number, signal?: AbortSignal): Promise<{ uploads: number; files: number } | undefined> {
    return underSessionLock(this.dataSource, uploadSweepLock, async () => {
      const now = at ?? (await databaseNow(this.dataSource));
      const counts = {
        uploads: await this.removeOld(now, signal),
        files: await this.files.removeStray(uploadsFolder, { ...named, now, signal }),
      };
      if (counts.uploads + counts.files > 0) this.logger.log('uploads were removed', { ...counts });
      return counts;
    });
  }

  private async removeOld(now: number, signal?: AbortSignal): Promise<number> {
    const before = new Date(now - uploadLifeHours * 3_600_000);
    let sum = 0;
    for (let count = batchSize; count === batchSize && !signal?.aborted; sum += count) {
      const removed = await this.transactions.run((manager) => removeBatch(manager, before));
      await this.files.removeAll(removed.map(({ key }) => key));
      count = removed.length;
    }
    return sum;
  }
}

interface Removed {
  id: string;
  ownerId: string;
  key: string;
  bytes: number;
}

async function removeBatch(manager: EntityManager, before: Date): Promise<Removed[]> {
  const due = await manager.query<{ id: string }[]>(lockStatement, [before]);
  const [removed] = await manager.query<[Removed[], number]>(deleteStatement, [due.map(({ id }) => id)]);
  await forgetReplies(
    manager,
    removed.map(({ id }) => id),
  );
  const bytesOf = new Map<string, number>();
  for (const { ownerId, bytes } of removed) bytesOf.set(ownerId, (bytesOf.get(ownerId) ?? 0) + bytes);
  // In one order, because two rounds may lock the same counts.
  for (const [ownerId, bytes] of [...bytesOf].sort(([a], [b]) => (a < b ? -1 : 1)))
    await addStored(manager, ownerId, { pictureBytes: -bytes });
  return removed;
}
