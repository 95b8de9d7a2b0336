import type { ApiKeyScope } from '@app/domain';
import { ApiKey, newApiKeySecret, newIdentifier, newWebhookSecret } from '@app/domain';

/**
 * Makes a key for a caller, with its own secret for webhooks. The row is the caller's to save.
 * @returns the row, and the token that is known now and never again.
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
