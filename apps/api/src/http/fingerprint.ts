import { createHash } from 'node:crypto';
import type { Hash } from 'node:crypto';

/** No valid body is this deep; deeper parts are ignored, since such a body is rejected anyway. */
const maxDepth = 32;
/** The hash is fed in pieces of about this many characters, so that a large body is not copied as a whole. */
const pieceLength = 64 * 1024;

/**
 * SHA-256, in hexadecimal, of a request's target and of its body as a JSON value: white space and the order of keys are
 * ignored. Each part of the body is visited once.
 */
export function fingerprintOf(method: string, target: string, body: unknown): string {
  const feed = new Feed(createHash('sha256'));
  feed.write(`${method} ${target}\n`);
  writeValue(feed, body, 0);
  return feed.digest();
}

function writeValue(feed: Feed, value: unknown, depth: number): void {
  if (typeof value !== 'object' || value === null) return feed.write(JSON.stringify(value) ?? '');
  if (depth === maxDepth) return feed.write('too deep');
  if (Array.isArray(value)) {
    feed.write('[');
    for (const element of value as unknown[]) {
      writeValue(feed, element, depth + 1);
      feed.write(',');
    }
    return feed.write(']');
  }
  feed.write('{');
  for (const key of Object.keys(value).sort()) {
    feed.write(`${JSON.stringify(key)}:`);
    writeValue(feed, (value as Record<string, unknown>)[key], depth + 1);
    feed.write(',');
  }
  feed.write('}');
}

class Feed {
  private piece = '';

  constructor(private readonly hash: Hash) {}

  write(text: string): void {
    this.piece += text;
    if (this.piece.length >= pieceLength) this.flush();
  }

  digest(): string {
    this.flush();
    return this.hash.digest('hex');
  }

  private flush(): void {
    this.hash.update(this.piece);
    this.piece = '';
  }
}
