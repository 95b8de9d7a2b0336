import { namedToken } from '@app/domain';
import type { DataSource, EntityManager } from 'typeorm';
import type { Size } from './pixels';

/** A picture that the service has for a caller: an upload, or one of its records'. */
export interface OwnPicture extends Size {
  token: string;
  storageKey: string;
}

const findStatement = `
SELECT token, storage_key AS "storageKey", width, height FROM uploaded_pictures WHERE token = $1 AND account_id = $2
UNION ALL
SELECT image.token, image.storage_key, image.width, image.height FROM images image JOIN tasks task ON task.id = image.task_id
WHERE image.token = $1 AND task.account_id = $2`;

/**
 * The caller's picture at a URL, told by its token and not by its host: an api, its workers and a CDN may use different
 * hosts for the service.
 * @returns undefined if the URL leads elsewhere, null if it leads here but to no picture of the caller's
 */
export async function findOwnPicture(
  database: Pick<DataSource | EntityManager, 'query'>,
  publicUrl: string,
  { accountId, url }: { accountId: string; url: string },
): Promise<OwnPicture | null | undefined> {
  const named = namedToken(publicUrl, url);
  if (!named) return undefined;
  const { token, isHere } = named;
  const [found] = token ? await database.query<OwnPicture[]>(findStatement, [token, accountId]) : [];
  return found ?? (isHere ? null : undefined);
}
