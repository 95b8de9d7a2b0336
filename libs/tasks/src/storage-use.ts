import { type Queryable } from './fair-queue';

/** Change in bytes of a caller's files; negative when files are deleted. */
export interface StoredChange {
  pictureBytes?: number;
  weightBytes?: number;
}

/**
 * Changes a caller's count, in the transaction that inserts or deletes the rows of the files. Call it last: its row
 * stays locked to the end.
 */
export async function addStored(
  database: Queryable,
  ownerId: string,
  { pictureBytes = 0, weightBytes = 0 }: StoredChange,
): Promise<void> {
  if (pictureBytes === 0 && weightBytes === 0) return;
  await database.query(
    `INSERT INTO storage_use AS stored (owner_id, picture_bytes, weight_bytes) VALUES ($1, $2, $3)
     ON CONFLICT (owner_id) DO UPDATE SET
       picture_bytes = stored.picture_bytes + excluded.picture_bytes,
       weight_bytes = stored.weight_bytes + excluded.weight_bytes`,
    [ownerId, pictureBytes, weightBytes],
  );
}
