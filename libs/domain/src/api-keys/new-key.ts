import { newIdentifier } from '../common/identifier';
import type { ApiKeyScope } from './api-key';
import { ApiKey } from './api-key';
import { newApiKeySecret, newWebhookSecret } from './api-key-secret';

/**
 * Makes a key for a caller, with its own webhook secret. The caller of this function saves the row.
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
