import type { EntityManager } from 'typeorm';

/** PostgreSQL channel: an API key was revoked or rotated. The payload is its id. */
export const keyChannel = 'darkroom_key';

/**
 * Tells the api processes that a key has changed, when the surrounding transaction commits: what they
 * keep of it is dropped.
 */
export async function announceKey(database: Pick<EntityManager, 'query'>, keyId: string): Promise<void> {
  await database.query('SELECT pg_notify($1, $2)', [keyChannel, keyId]);
}
