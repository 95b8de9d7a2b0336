import type { EntityManager } from 'typeorm';
import { ConflictError } from '../errors/domain-error';
import { ApiKey } from './api-key';
import { announceKey } from './key-channel';

/** The name and the limits of a key. Null: the service's default, or pictures that are kept for ever. */
export type KeySettings = Pick<
  ApiKey,
  'name' | 'rateLimitPerMinute' | 'maxQueued' | 'maxConcurrent' | 'maxStorageMb' | 'retentionDays'
>;

/** Changes the given settings of a key. @throws ConflictError for a revoked key. */
export function changeKey(database: EntityManager, id: string, changes: Partial<KeySettings>): Promise<ApiKey> {
  return withLockedKey(database, id, async (key, manager) => {
    if (Object.keys(changes).length > 0) await manager.update(ApiKey, { id }, changes);
    return Object.assign(key, changes);
  });
}

/**
 * Gives a key a new token, and notifies the api processes; the previous one is accepted until `graceEndsAt`.
 * @throws ConflictError for a revoked key.
 */
export function rotateKey(
  database: EntityManager,
  id: string,
  graceEndsAt: Date,
): Promise<{ key: ApiKey; token: string }> {
  return withLockedKey(database, id, async (key, manager) => {
    const token = key.rotateSecret(graceEndsAt);
    const { secretHash, previousSecretHash, previousSecretExpiresAt } = key;
    await manager.update(ApiKey, { id }, { secretHash, previousSecretHash, previousSecretExpiresAt });
    await announceKey(manager, id);
    return { key, token };
  });
}

/**
 * Gives a key a new secret for its webhooks; the previous one also signs until `graceEndsAt`.
 * @throws ConflictError for a revoked key.
 */
export function rotateWebhookSecret(database: EntityManager, id: string, graceEndsAt: Date): Promise<ApiKey> {
  return withLockedKey(database, id, async (key, manager) => {
    key.rotateWebhookSecret(graceEndsAt);
    const { webhookSecret, previousWebhookSecret, previousWebhookSecretExpiresAt } = key;
    await manager.update(ApiKey, { id }, { webhookSecret, previousWebhookSecret, previousWebhookSecretExpiresAt });
    return key;
  });
}

/** Locks the row of a key: two rotations at the same time would both keep the same previous secret. */
function withLockedKey<T>(
  database: EntityManager,
  id: string,
  change: (key: ApiKey, manager: EntityManager) => Promise<T>,
): Promise<T> {
  return database.transaction(async (manager) => {
    const key = await manager.findOneOrFail(ApiKey, { where: { id }, lock: { mode: 'pessimistic_write' } });
    if (key.revokedAt) throw new ConflictError('KeyRevoked', 'The key is revoked; make a new one.');
    return change(key, manager);
  });
}
