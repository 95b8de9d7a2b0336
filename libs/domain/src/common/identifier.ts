import { randomFillSync } from 'node:crypto';

const bytesEach = 18;
/** Random bytes of identifiers to come: the system is asked once for many. */
const pool = Buffer.alloc(256 * bytesEach);
let used = pool.length;

/** A new identifier: 18 random bytes (144 bits) as 24 URL-safe characters. */
export function newIdentifier(): string {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  used += bytesEach;
  return pool.toString('base64url', used - bytesEach, used);
}

/** Whether a string has the form of an identifier; one that has not names nothing. */
export function isIdentifier(value: string): boolean {
  return /^[A-Za-z0-9_-]{24}$/.test(value);
}
