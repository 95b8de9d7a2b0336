import { type Queryable } from './fair-queue';

/** Change in bytes of what a caller has; negative when it is deleted. */
export interface StoredChange {
  pictureBytes?: number;
  weightBytes?: number;
  /** For pictures of tasks that have not ended. */
  reservedBytes?: number;
  /** Of the database, and thumbnails of Styles. */
  recordBytes?: number;
}

/** What changes for one of several keys. */
export type StoredChangeOf = StoredChange & { ownerId: string };

/** A caller's counts; the driver returns large numbers as text. */
export type StoredBytes = Record<'picture_bytes' | 'weight_bytes' | 'reserved_bytes' | 'record_bytes', string>;

/**
 * Changes a caller's counts, in the transaction that inserts or deletes the rows of the files. Call it last: the row of
 * counts stays locked to the end.
 * @returns the new counts; undefined if nothing changes
 */
export async function addStored(
  database: Queryable,
  ownerId: string,
  { pictureBytes = 0, weightBytes = 0, reservedBytes = 0, recordBytes = 0 }: StoredChange,
): Promise<StoredBytes | undefined> {
  const changes = [pictureBytes, weightBytes, reservedBytes, recordBytes];
  if (changes.every((bytes) => bytes === 0)) return undefined;
  const [stored] = await database.query<[StoredBytes]>(
    `INSERT INTO storage_use AS stored (owner_id, picture_bytes, weight_bytes, reserved_bytes, record_bytes)
     VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (owner_id) DO UPDATE SET
       picture_bytes = stored.picture_bytes + excluded.picture_bytes,
       weight_bytes = stored.weight_bytes + excluded.weight_bytes,
       reserved_bytes = stored.reserved_bytes + excluded.reserved_bytes,
       record_bytes = stored.record_bytes + excluded.record_bytes
     RETURNING picture_bytes, weight_bytes, reserved_bytes, record_bytes`,
    [ownerId, ...changes],
  );
  return stored;
}

/** Changes the counts of several keys as `addStored` does, in one order, because others may lock the same ones. */
export async function addStoredOf(database: Queryable, changes: readonly StoredChangeOf[]): Promise<void> {
  const inOrder = [...changes].sort((a, b) => (a.ownerId < b.ownerId ? -1 : 1));
  for (const { ownerId, ...change } of inOrder) await addStored(database, ownerId, change);
}
