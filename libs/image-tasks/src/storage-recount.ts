import type { DataSource } from 'typeorm';
import {
  correctStatement,
  countPicturesStatement,
  dueStatement,
  heldStatement,
  pageStatement,
} from './statements/recount-stored';

interface Page {
  bytes: string;
  /** Succeeded tasks whose pictures nobody has counted: those of a version before. */
  uncounted: string[] | null;
  last_at: string | null;
  last_id: string | null;
}

/**
 * Compares the counts that were not compared for longest with the rows, a few at a time, and counts the pictures of a version before.
 * One owner's failure is thrown when the others are done.
 * @returns how many were compared, and how many of these were wrong.
 */
export async function recountStored(
  database: Pick<DataSource, 'query' | 'transaction'>,
  { most, agoHours, signal }: { most: number; agoHours: number; signal?: AbortSignal },
): Promise<{ compared: number; wrong: number }> {
  const due = await database.query<{ id: string }[]>(dueStatement, [agoHours, most]);
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
 * All that is read is of one moment, at which count and rows were moved alike: what lies between them is the error, however much either
 * has moved since. So nothing is locked while files are counted.
 */
async function recount(
  database: Pick<DataSource, 'query' | 'transaction'>,
  ownerId: string,
  signal?: AbortSignal,
): Promise<boolean> {
  const seen = await database.transaction('REPEATABLE READ', async (manager) => {
    const [{ counted_at: countedAt, ...held }] = await manager.query<
      [{ picture_bytes: string; weight_bytes: string; files: string; counted_at: string | null }]
    >(heldStatement, [ownerId]);
    let pictures = -BigInt(held.picture_bytes);
    for (let last = ['-infinity', '']; ;) {
      const [page] = await manager.query<[Page]>(pageStatement, [ownerId, ...last]);
      pictures += BigInt(page.bytes);
      // On a connection of its own: it moves rows and count alike, and so not what lies between them.
      if (page.uncounted) await database.query(countPicturesStatement, [page.uncounted]);
      if (page.last_at === null || page.last_id === null) break;
      signal?.throwIfAborted();
      last = [page.last_at, page.last_id];
    }
    return { pictures, weights: BigInt(held.files) - BigInt(held.weight_bytes), countedAt };
  });
  const missing = [String(seen.pictures), String(seen.weights)];
  await database.query(correctStatement, [ownerId, ...missing, seen.countedAt]);
  return missing.some((bytes) => bytes !== '0');
}
