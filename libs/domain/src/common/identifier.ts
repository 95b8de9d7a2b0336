import { randomFillSync } from 'node:crypto';

const idBytes = 18;
/** Random bytes for future identifiers: one system call serves many. */
const pool = Buffer.alloc(256 * idBytes);
let used = pool.length;

/**
 * A new identifier: 18 random bytes (144 bits, less 0.05) as 24 URL-safe characters. The first one is a letter or a
 * digit: a command would take a dash for an option, and a spreadsheet for a formula.
 */
export function newIdentifier(): string {
  for (;;) {
    if (used === pool.length) {
      randomFillSync(pool);
      used = 0;
    }
    used += idBytes;
    const id = pool.toString('base64url', used - idBytes, used);
    if (!/^[-_]/.test(id)) return id;
  }
}

/** Whether a string has the form of an identifier; otherwise no record can have it. */
export function isIdentifier(value: string): boolean {
  return /^[A-Za-z0-9_-]{24}$/.test(value);
}
