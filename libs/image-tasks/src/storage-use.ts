/** What runs a statement: an entity manager or a data source. */
interface Queryable {
  query<T = unknown>(statement: string, parameters?: unknown[]): Promise<T>;
}

/** Bytes that a caller's files have come to take, or take no more where they are negative. */
export interface StoredChange {
  pictureBytes?: number;
  weightBytes?: number;
}

/** Moves a caller's count, in the transaction that adds or removes the rows of the files, and last in it: its row is held to the end. */
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
