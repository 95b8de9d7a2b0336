import type { DataSource } from 'typeorm';
import {
  correctStatement,
  countPicturesStatement,
  dueOwnersStatement,
  storedCountStatement,
  pageStatement,
} from './statements/recount-stored';

interface Page {
  bytes: string;
  /** Succeeded tasks whose pictures were never counted: those of an older version. */
  uncounted: string[] | null;
  last_at: string | null;
  last_id: string | null;
}

/**
 * Compares a few counts with the rows, those not compared for longest, and counts the pictures of an older version. An
 * owner's error is thrown after the others are done.
 * @returns how many were compared, and how many of these were wrong.
 */
export async function recountStored(
  database: Pick<DataSource, 'query' | 'transaction'>,
  { most, agoHours, signal }: { most: number; agoHours: number; signal?: AbortSignal },
): Promise<{ compared: number; wrong: number }> {
  const due = await database.query<{ id: string }[]>(dueOwnersStatement, [agoHours, most]);
  let wrong = 0;
  const failures: unknown[] = [];
  for (const { id } of due) {
    if (signal?.aborted) break;
    await recount(database, id, signal).then(
      (wasWrong) => (wrong += Number(wasWrong)),
      (error: unknown) => failures.push(error),
    );
  }
  if (failures.length > 0) throw failures[0];
  return { compared: due.length, wrong };
}

/**
 * Reads everything in one snapshot, in which count and rows agree; so any difference is an error, whatever changes
 * meanwhile. Nothing is locked while files are counted.
 */
async function recount(
  database: Pick<DataSource, 'query' | 'transaction'>,
  ownerId: string,
  signal?: AbortSignal,
): Promise<boolean> {
  const snapshot = await database.transaction('REPEATABLE READ', async (manager) => {
    const [{ counted_at: countedAt, ...held }] = await manager.query<
      [{ picture_bytes: string; weight_bytes: string; files: string; counted_at: string | null }]
    >(storedCountStatement, [ownerId]);
    let pictures = -BigInt(held.picture_bytes);
    for (let last = ['-infinity', '']; ;) {
      const [page] = await manager.query<[Page]>(pageStatement, [ownerId, ...last]);
      pictures += BigInt(page.bytes);
      // On a connection of its own: it changes rows and count together, and so does not affect the difference.
      if (page.uncounted) await database.query(countPicturesStatement, [page.uncounted]);
      if (page.last_at === null || page.last_id === null) break;
      signal?.throwIfAborted();
      last = [page.last_at, page.last_id];
    }
    return { pictures, weights: BigInt(held.files) - BigInt(held.weight_bytes), countedAt };
  });
  const missing = [String(snapshot.pictures), String(snapshot.weights)];
  await database.query(correctStatement, [ownerId, ...missing, snapshot.countedAt]);
  return missing.some((bytes) => bytes !== '0');
}
