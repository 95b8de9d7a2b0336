import { randomBytes } from 'node:crypto';

/** A new identifier: 18 random bytes (144 bits) as 24 URL-safe characters. */
export function newIdentifier(): string {
  return randomBytes(18).toString('base64url');
}

/** Whether a string has the form of an identifier; one that has not names nothing. */
export function isIdentifier(value: string): boolean {
  return /^[A-Za-z0-9_-]{24}$/.test(value);
}
