import type { ApiKey } from './api-key';

/** A key without its secrets, as the API and the commands show it. */
export function keyFacts(key: ApiKey) {
  return {
    id: key.id,
    prefix: `dr_${key.prefix}`,
    name: key.name,
    scopes: key.scopes,
    sandbox: key.sandbox,
    rate_limit_per_minute: key.rateLimitPerMinute,
    max_queued: key.maxQueued,
    max_concurrent: key.maxConcurrent,
    max_storage_mb: key.maxStorageMb,
    retention_days: key.retentionDays,
    created_at: key.createdAt.toISOString(),
    last_used_at: key.lastUsedAt?.toISOString() ?? null,
    revoked_at: key.revokedAt?.toISOString() ?? null,
  };
}
