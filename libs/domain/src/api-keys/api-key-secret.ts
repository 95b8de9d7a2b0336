import { hash, randomBytes, timingSafeEqual } from 'node:crypto';

/** The parts of a new key; `token` is shown once and never stored. */
export interface ApiKeySecret {
  token: string;
  prefix: string;
  secretHash: Buffer;
}

const tokenPattern = /^dr_([0-9a-z]{12})_([A-Za-z0-9_-]{43})$/;

/**
 * Makes a key `dr_<12 public characters>_<43 secret characters>` (256 random bits), or a new
 * secret for an existing key.
 */
export function newApiKeySecret(prefix = randomBytes(6).toString('hex')): ApiKeySecret {
  const secret = randomBytes(32).toString('base64url');
  return { token: `dr_${prefix}_${secret}`, prefix, secretHash: hashOf(secret) };
}

/** Splits a presented token; undefined if it does not have the form of a key. */
export function parseApiKeyToken(token: string): { prefix: string; secretHash: Buffer } | undefined {
  const match = tokenPattern.exec(token);
  return match ? { prefix: match[1], secretHash: hashOf(match[2]) } : undefined;
}

/** Compares two SHA-256 hashes in constant time. */
export function sameSecret(a: Buffer, b: Buffer): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}

/** Makes the secret that signs a caller's webhooks, in the Standard Webhooks form. */
export function newWebhookSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`;
}

function hashOf(secret: string): Buffer {
  return hash('sha256', secret, 'buffer');
}
