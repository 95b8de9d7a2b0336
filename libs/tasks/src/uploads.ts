import { namedToken, pointerToField, UnprocessableError } from '@app/domain';
import type { EntityManager } from 'typeorm';
import { addStoredOf } from './storage-use';

/** A picture that a request names by its URL, and its field, such as `image` or `control[0].image`. */
export interface NamedPicture {
  url: string;
  field: string;
}

/** Pictures of a request, and the task that needs them. */
export interface NeededPictures {
  publicUrl: string;
  accountId: string;
  taskId: string;
  pictures: readonly NamedPicture[];
}

/**
 * Keeps the uploads among these pictures as long as the task is there, in the transaction that inserts it. URLs of
 * other servers are ignored.
 * @throws UnprocessableError `PictureNotFound` for a URL of this service that leads to no picture of the account's
 */
export async function useUploads(
  manager: EntityManager,
  { publicUrl, accountId, taskId, pictures }: NeededPictures,
): Promise<void> {
  const named = pictures.flatMap(({ url, field }) => {
    const found = namedToken(publicUrl, url);
    return found ? [{ ...found, field }] : [];
  });
  if (named.length === 0) return;
  const tokens = named.map(({ token }) => token);
  // The lock prevents deletion until this transaction has ended.
  const uploads = await manager.query<{ id: string; token: string }[]>(
    'SELECT id, token FROM uploaded_pictures WHERE token = ANY($1) AND account_id = $2 FOR KEY SHARE',
    [tokens, accountId],
  );
  const drawn = await manager.query<{ token: string }[]>(
    `SELECT image.token FROM images image JOIN tasks task ON task.id = image.task_id
     WHERE image.token = ANY($1) AND task.account_id = $2`,
    [tokens, accountId],
  );
  const known = new Set([...uploads, ...drawn].map(({ token }) => token));
  const missing = named.filter(({ token, isHere }) => isHere && !known.has(token));
  if (missing.length > 0) throw notFound(missing.map(({ field }) => field));
  await manager.query('INSERT INTO picture_uses (task_id, upload_id) SELECT $1, unnest($2::varchar[])', [
    taskId,
    uploads.map(({ id }) => id),
  ]);
}

/**
 * Deletes the uploads that only these tasks need, in the transaction that ends or deletes them. Call it late: the counts of
 * stored bytes stay locked to the end.
 * @returns the keys of their files, to be removed after the commit.
 */
export async function dropUploads(manager: EntityManager, taskIds: readonly string[]): Promise<string[]> {
  await manager.query(
    `SELECT FROM uploaded_pictures WHERE id IN (SELECT upload_id FROM picture_uses WHERE task_id = ANY($1))
     ORDER BY id FOR UPDATE`,
    [taskIds],
  );
  const [dropped] = await manager.query<[{ ownerId: string; key: string; bytes: number }[], number]>(
    `DELETE FROM uploaded_pictures WHERE id IN (
       SELECT upload_id FROM picture_uses mine WHERE task_id = ANY($1) AND NOT EXISTS (
         SELECT FROM picture_uses other WHERE other.upload_id = mine.upload_id AND other.task_id <> ALL($1)
       )
     ) RETURNING owner_id AS "ownerId", storage_key AS key, bytes`,
    [taskIds],
  );
  await manager.query('DELETE FROM picture_uses WHERE task_id = ANY($1)', [taskIds]);
  await addStoredOf(
    manager,
    dropped.map(({ ownerId, bytes }) => ({ ownerId, pictureBytes: -bytes })),
  );
  return dropped.map(({ key }) => key);
}

function notFound(fields: readonly string[]): UnprocessableError {
  const message = 'must be the URL of an upload or of a picture of yours, or of one elsewhere';
  return new UnprocessableError(
    'PictureNotFound',
    `There is no upload and no picture of yours at the URL in \`${fields[0]}\`, or not any more.`,
    fields.map((field) => ({ pointer: pointerToField(field), message })),
  );
}
