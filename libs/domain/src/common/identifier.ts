import { randomBytes } from 'node:crypto';

/** Length of every identifier, in URL-safe characters. */
export const identifierLength = 24;

/** A new identifier: 18 random bytes (144 bits) as 24 URL-safe characters. */
export function newIdentifier(): string {
  return randomBytes(18).toString('base64url');
}
