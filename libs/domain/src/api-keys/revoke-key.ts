import type { EntityManager } from 'typeorm';
import { keyChannel } from './key-channel';

/**
 * Revokes a key and notifies the api processes, which close what it has open and cancel its tasks. A
 * revoked key stays as it is.
 */
export async function revokeKey(database: Pick<EntityManager, 'query'>, keyId: string): Promise<void> {
  await database.query(
    `WITH revoked AS (UPDATE api_keys SET revoked_at = now() WHERE id = $1 AND revoked_at IS NULL RETURNING id)
     SELECT pg_notify($2, id) FROM revoked`,
    [keyId, keyChannel],
  );
}
