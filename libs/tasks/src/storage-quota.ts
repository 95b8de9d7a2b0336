import { type Config, CONFIG } from '@app/config';
import { TooManyError, UnprocessableError } from '@app/domain';
import { Inject, Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import type { TaskStorage } from './storage-estimates';
import { addStored, type StoredBytes } from './storage-use';

/** In SQL: an upload no longer counts when its process has sent no heartbeat for this long. */
export const uploadLifeSql = `interval '2 minutes'`;

/** A key's limit and use; `caller` and `stored` are its rows of `api_keys` and `storage_use`. */
export const storageColumns = `caller.max_storage_mb, coalesce(stored.picture_bytes, 0) AS picture_bytes,
  coalesce(stored.weight_bytes, 0) AS weight_bytes, coalesce(stored.reserved_bytes, 0) AS reserved_bytes,
  coalesce(stored.record_bytes, 0) AS record_bytes,
  (SELECT coalesce(sum(bytes), 0) FROM uploads
   WHERE uploads.owner_id = caller.id AND renewed_at > now() - ${uploadLifeSql}) AS upload_bytes`;

/** The results of `storageColumns`; the driver returns large numbers as text. */
export type StorageRow = StoredBytes & { max_storage_mb: number | null; upload_bytes: string };

/** A caller has more than its key may store. The message is one plain sentence for the caller. */
export class StorageFullError extends Error {
  override readonly name = 'StorageFullError';
}

const retryAfterSeconds = 10;

/** Uploads in progress, and pictures that wait to be drawn, may take the rest of the key's space. */
export class RoomReservedError extends TooManyError {
  constructor(reservedBytes: number) {
    super(
      'RoomReserved',
      `The room that this API key has left, ${megabytes(reservedBytes)}, is kept for its uploads in progress, of which one that tells its size in Content-Length takes no more than that, and for its pictures that wait to be drawn. Try again when they are there.`,
      retryAfterSeconds,
    );
  }
}

/**
 * How much each key may store. A request's data has to fit beside all that the key has, including the space kept for
 * its uploads in progress and its tasks; a task's results only beside what is stored, because the space kept for them
 * was an estimate.
 */
@Injectable()
export class StorageQuota {
  constructor(@Inject(CONFIG) private readonly config: Pick<Config, 'storageMbPerKey'>) {}

  /** Negative if the key has more than it may. */
  bytesLeft(row: StorageRow): number {
    const cap = this.capOf(row);
    return cap === 0 ? Infinity : cap * 1e6 - usedBytes(row);
  }

  /**
   * @param bytes to be stored, if known
   * @param replacedBytes that will be replaced, which do not count
   * @throws UnprocessableError `StorageFull` naming the key's use, if there is no room for `bytes`, or for anything;
   * RoomReservedError if there would be room without the uploads in progress
   */
  assertRoom(row: StorageRow, { bytes = 0, replacedBytes = 0 } = {}): void {
    const wanted = Math.max(bytes, 1);
    const reservedBytes = Number(row.upload_bytes) + Number(row.reserved_bytes);
    const left = this.bytesLeft(row) + replacedBytes;
    if (left >= wanted) return;
    if (left + reservedBytes >= wanted) throw new RoomReservedError(reservedBytes);
    const parts = [
      `${megabytes(Number(row.picture_bytes))} of pictures`,
      `${megabytes(Number(row.weight_bytes))} of weights`,
      `${megabytes(Number(row.record_bytes))} of records`,
      `${megabytes(Number(row.reserved_bytes))} kept for pictures that wait to be drawn`,
      `${megabytes(Number(row.upload_bytes))} of uploads in progress`,
    ];
    throw new UnprocessableError(
      'StorageFull',
      `This API key may store ${this.capOf(row)} MB and has ${megabytes(usedBytes(row))}: ${parts.join(', ')}${
        bytes > 0 ? `; this would add ${megabytes(bytes)}` : ''
      }. Delete records or Fine-Tunes to make room.`,
    );
  }

  /**
   * @param row counts that already include what is added
   * @throws as `assertRoom` does
   */
  assertRoomAfter(row: StorageRow, { reservedBytes, recordBytes }: TaskStorage): void {
    if (this.bytesLeft(row) >= 0) return;
    const before = {
      ...row,
      reserved_bytes: String(Number(row.reserved_bytes) - reservedBytes),
      record_bytes: String(Number(row.record_bytes) - recordBytes),
    };
    this.assertRoom(before, { bytes: reservedBytes + recordBytes });
  }

  /** @throws StorageFullError if so many more bytes do not fit beside what the key has stored */
  async assertStorable(manager: EntityManager, ownerId: string, bytes: number): Promise<void> {
    const row = await this.read(manager, ownerId);
    const cap = row && this.capOf(row);
    if (!cap) return;
    const stored = [row.picture_bytes, row.weight_bytes, row.record_bytes].reduce((sum, each) => sum + Number(each), 0);
    if (stored + bytes > cap * 1e6)
      throw new StorageFullError(
        `There is no room for what this would make: the API key may store ${cap} MB and has ${(stored / 1e6).toFixed(3)} MB. Delete records or Fine-Tunes to make room.`,
      );
  }

  /**
   * Counts rows that a transaction has inserted, at its end: the owner's count stays locked.
   * @throws as `assertRoom` does
   */
  async addRecords(manager: EntityManager, ownerId: string, bytes: number): Promise<void> {
    this.assertRoom(await this.lock(manager, ownerId), { bytes });
    await addStored(manager, ownerId, { recordBytes: bytes });
  }

  /** One key's row, locked to the end of the transaction, so that two files do not get the same room. */
  async lock(manager: EntityManager, ownerId: string): Promise<StorageRow> {
    await manager.query('INSERT INTO storage_use (owner_id) VALUES ($1) ON CONFLICT DO NOTHING', [ownerId]);
    await manager.query('SELECT FROM storage_use WHERE owner_id = $1 FOR UPDATE', [ownerId]);
    return (await this.read(manager, ownerId))!;
  }

  private async read(manager: EntityManager, ownerId: string): Promise<StorageRow | undefined> {
    const [row] = await manager.query<(StorageRow | undefined)[]>(
      `SELECT ${storageColumns} FROM api_keys caller LEFT JOIN storage_use stored ON stored.owner_id = caller.id
       WHERE caller.id = $1`,
      [ownerId],
    );
    return row;
  }

  /** Megabytes; 0: no limit. */
  private capOf({ max_storage_mb: own }: StorageRow): number {
    return own ?? this.config.storageMbPerKey;
  }
}

/** To the kilobyte, so that the parts of a sum agree with it. */
const megabytes = (count: number): string => `${Number((count / 1e6).toFixed(3))} MB`;

function usedBytes({ picture_bytes, weight_bytes, reserved_bytes, record_bytes, upload_bytes }: StorageRow): number {
  return [picture_bytes, weight_bytes, reserved_bytes, record_bytes, upload_bytes].reduce(
    (sum, bytes) => sum + Number(bytes),
    0,
  );
}
