import type { EntityManager } from 'typeorm';
import { newIdentifier } from '../common/identifier';
import { ConflictError } from '../errors/domain-error';
import { ApiKey, type ApiKeyScope, newApiKeySecret, newWebhookSecret } from './api-key';

/** Bounds for changes of a key, over HTTP and by the command. */
export const keyBounds = {
  /** Of each limit but the retention; 0 means no limit. */
  maxCount: 1_000_000,
  maxRetentionDays: 36_500,
  /** How long the previous token or secret stays valid. */
  graceHours: { default: 24, max: 8760 },
} as const;

/** The end of a grace period that begins now. */
export const graceEnd = (hours: number = keyBounds.graceHours.default): Date =>
  new Date(Date.now() + hours * 3_600_000);

/** A key without its secrets, as the API and the commands show it. */
export function keyFacts(key: ApiKey) {
  return {
    id: key.id,
    prefix: `dr_${key.prefix}`,
    name: key.name,
    account: key.account,
    scopes: key.scopes,
    sandbox: key.sandbox,
    rate_limit_per_minute: key.rateLimitPerMinute,
    max_queued: key.maxQueued,
    max_concurrent: key.maxConcurrent,
    max_storage_mb: key.maxStorageMb,
    retention_days: key.retentionDays,
    keep_training_uploads: key.keepTrainingUploads,
    filter: key.filter,
    created_at: key.createdAt.toISOString(),
    last_used_at: key.lastUsedAt?.toISOString() ?? null,
    revoked_at: key.revokedAt?.toISOString() ?? null,
  };
}

/** PostgreSQL channel: an API key was revoked. The payload is its id. */
export const keyChannel = 'darkroom_key';

/**
 * Makes a key for a caller, with its own webhook secret. Whoever calls this saves the row.
 * @returns the row, and the token, which cannot be recovered later.
 */
export function newApiKey(name: string, scopes: readonly ApiKeyScope[]): { apiKey: ApiKey; token: string } {
  const { token, prefix, secretHash } = newApiKeySecret();
  const apiKey = Object.assign(new ApiKey(), {
    id: newIdentifier(),
    name,
    prefix,
    secretHash,
    webhookSecret: newWebhookSecret(),
    scopes: [...scopes],
    lastUsedAt: null,
    revokedAt: null,
  });
  return { apiKey, token };
}

/** Two transactions that look for the name of an account could both begin one. */
const lockAccounts = `SELECT pg_advisory_xact_lock(hashtextextended('accounts', 0))`;

/**
 * Saves a new key.
 * @param account name of the account that it joins or begins; without one it is alone in its own
 * @throws ConflictError for a sandbox key and an account of others: what it trains is not real, and must not be drawn with
 */
export function saveKey(database: EntityManager, apiKey: ApiKey, account?: string | null): Promise<void> {
  return database.transaction(async (manager) => {
    const name = account?.normalize() ?? null;
    if (name !== null) await manager.query(lockAccounts);
    const other = name === null ? null : await manager.findOneBy(ApiKey, { account: name });
    if (other && other.sandbox !== apiKey.sandbox)
      throw accountConflict(`The account "${name}" has ${other.sandbox ? 'only' : 'no'} sandbox keys.`);
    await manager.insert(ApiKey, { ...apiKey, account: name, accountId: other?.accountId ?? apiKey.id });
  });
}

/**
 * Names the account that a key is alone in, so that others can join it.
 * @throws ConflictError for a key whose account has another name, and for the name of another account
 */
export function nameAccount(database: EntityManager, id: string, account: string): Promise<ApiKey> {
  const name = account.normalize();
  return withLockedKey(database, id, async (key, manager) => {
    await manager.query(lockAccounts);
    if (key.account === name) return key;
    if (key.account !== null) throw accountConflict(`The key is in the account "${key.account}", and stays there.`);
    if (await manager.existsBy(ApiKey, { account: name }))
      throw accountConflict(`There is an account "${name}" already; only new keys can join it.`);
    await manager.update(ApiKey, { id }, { account: name });
    return Object.assign(key, { account: name });
  });
}

const accountConflict = (message: string): ConflictError => new ConflictError('AccountConflict', message);

/** The name and the limits of a key. Null: the service's default; for the retention, kept for ever. */
export type KeySettings = Pick<
  ApiKey,
  | 'name'
  | 'rateLimitPerMinute'
  | 'maxQueued'
  | 'maxConcurrent'
  | 'maxStorageMb'
  | 'retentionDays'
  | 'keepTrainingUploads'
  | 'filter'
>;

/** Changes the given settings of a key. @throws ConflictError for a revoked key. */
export function changeKey(database: EntityManager, id: string, changes: Partial<KeySettings>): Promise<ApiKey> {
  return withLockedKey(database, id, async (key, manager) => {
    if (Object.keys(changes).length > 0) await manager.update(ApiKey, { id }, changes);
    return Object.assign(key, changes);
  });
}

/**
 * Gives a key a new token; the previous one is accepted until `graceEndsAt`.
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

/** Revokes a key and notifies the api processes, which close what it has open and cancel its tasks. Idempotent. */
export async function revokeKey(database: Pick<EntityManager, 'query'>, keyId: string): Promise<void> {
  await database.query(
    `WITH revoked AS (UPDATE api_keys SET revoked_at = now() WHERE id = $1 AND revoked_at IS NULL RETURNING id)
     SELECT pg_notify($2, id) FROM revoked`,
    [keyId, keyChannel],
  );
}
