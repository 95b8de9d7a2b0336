import { Webhook } from 'standardwebhooks';
import { WebhookVerificationError } from './errors.ts';
import type { Finetune, Generation, Prompt } from './types.ts';

/** The headers as Node or a `Request` has them. */
export type WebhookHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * Verifies a webhook request and returns its record: a Generation, or a Prompt or a Fine-Tune if you say so, for
 * a receiver of these.
 * @param secret `whsec_…`, of the key that made the record.
 * @param body the exact bytes as received, or their text; parsed and serialised again they differ.
 * @throws WebhookVerificationError if it is not from the service, or older than five minutes; TypeError if the secret
 * or the body cannot be one.
 */
export function verifyWebhook<T extends Generation | Prompt | Finetune = Generation>(
  secret: string,
  headers: WebhookHeaders,
  body: string | Uint8Array | ArrayBuffer,
): T {
  const text = textOf(body);
  const entries = headers instanceof Headers ? [...headers.entries()] : Object.entries(headers);
  const plain = Object.fromEntries(entries.map(([name, value]) => [name.toLowerCase(), String(value ?? '')]));
  const webhook = webhookOf(secret);
  try {
    return webhook.verify(text, plain) as T;
  } catch (error) {
    throw new WebhookVerificationError((error as Error).message, { cause: error });
  }
}

/** @throws TypeError: it is a mistake of the receiver's author, not of the sender */
function textOf(body: string | Uint8Array | ArrayBuffer): string {
  if (typeof body === 'string') return body;
  if (ArrayBuffer.isView(body) || body instanceof ArrayBuffer) return new TextDecoder().decode(body);
  throw new TypeError('The body of a webhook must be the raw body, bytes or text, not a parsed object.');
}

function webhookOf(secret: string): Webhook {
  try {
    return new Webhook(secret);
  } catch (error) {
    throw new TypeError('The secret of a webhook must be "whsec_" and base64.', { cause: error });
  }
}
