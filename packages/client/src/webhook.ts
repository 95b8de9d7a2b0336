import { Webhook } from 'standardwebhooks';
import type { Generation } from './types';

/** As Node or a `Request` has them. */
export type WebhookHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * The Generation that a request to your webhook carries.
 * @param secret `whsec_…`, that of the key the Generation was made with.
 * @param body exactly as it was received; parsed and written again it is another.
 * @throws WebhookVerificationError when it is not from the service, or older than five minutes.
 */
export function verifyWebhook(secret: string, headers: WebhookHeaders, body: string | Uint8Array): Generation {
  const text = typeof body === 'string' ? body : new TextDecoder().decode(body);
  const entries = headers instanceof Headers ? [...headers.entries()] : Object.entries(headers);
  const plain = Object.fromEntries(entries.map(([name, value]) => [name.toLowerCase(), String(value ?? '')]));
  return new Webhook(secret).verify(text, plain) as Generation;
}
