import { Webhook } from 'standardwebhooks';
import type { Generation } from './types';

/** The headers as Node or a `Request` has them. */
export type WebhookHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * Verifies a webhook request and returns its Generation.
 * @param secret `whsec_…`, of the key that made the Generation.
 * @param body the exact bytes as received; parsed and serialised again they differ.
 * @throws WebhookVerificationError if it is not from the service, or older than five minutes.
 */
export function verifyWebhook(secret: string, headers: WebhookHeaders, body: string | Uint8Array): Generation {
  const text = typeof body === 'string' ? body : new TextDecoder().decode(body);
  const entries = headers instanceof Headers ? [...headers.entries()] : Object.entries(headers);
  const plain = Object.fromEntries(entries.map(([name, value]) => [name.toLowerCase(), String(value ?? '')]));
  return new Webhook(secret).verify(text, plain) as Generation;
}
