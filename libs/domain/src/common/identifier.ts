import { randomFillSync } from 'node:crypto';

const idBytes = 18;
/** Random bytes for future identifiers: one system call serves many. */
const pool = Buffer.alloc(256 * idBytes);
let used = pool.length;

/** A new identifier: 18 random bytes (144 bits) as 24 URL-safe characters. */
export function newIdentifier(): string {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  used += idBytes;
  return pool.toString('base64url', used - idBytes, used);
}

/** Whether a string has the form of an identifier; otherwise no record can have it. */
export function isIdentifier(value: string): boolean {
  return /^[A-Za-z0-9_-]{24}$/.test(value);
}
