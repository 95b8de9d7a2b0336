/** Keys that metadata must not have, because JavaScript treats them specially. */
export const forbiddenKeys: readonly string[] = ['__proto__', 'constructor', 'prototype'];

/** Whether a string can be stored and sent as UTF-8: no NUL and no half of a surrogate pair. */
export function isCleanText(value: string): boolean {
  return !value.includes('\0') && value.isWellFormed();
}

/** Whether a string has a letter or a digit of any script. */
export function hasWord(value: string): boolean {
  return /[\p{L}\p{N}]/u.test(value);
}

/** The number of characters of a string, counting a surrogate pair as one. */
export function characterCount(value: string): number {
  let count = value.length;
  for (let i = 0; i + 1 < value.length; i++)
    if ((value.charCodeAt(i) & 0xfc00) === 0xd800 && (value.charCodeAt(i + 1) & 0xfc00) === 0xdc00) {
      count--;
      i++;
    }
  return count;
}

/**
 * Why an object is not valid metadata; undefined if it is. The walk stops as soon as the limit is exceeded; only an
 * object that passes it is written as JSON, for its exact size.
 */
export function metadataProblem(value: unknown, bounds: { bytes: number; depth: number }): string | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'must be a JSON object';
  const tooLarge = `must be at most ${bounds.bytes} bytes of JSON`;
  const open: { node: object; depth: number }[] = [{ node: value, depth: 1 }];
  // A member takes at least two bytes of JSON: itself and a comma or a bracket.
  let minBytes = 0;
  for (let next = open.pop(); next; next = open.pop()) {
    const { node, depth } = next;
    if (depth > bounds.depth) return `must have at most ${bounds.depth} levels`;
    const isArray = Array.isArray(node);
    const keys = isArray ? undefined : Object.keys(node);
    const members = isArray ? (node as unknown[]) : Object.values(node as Record<string, unknown>);
    minBytes += 2 * members.length;
    if (minBytes > bounds.bytes) return tooLarge;
    for (let i = 0; i < members.length; i++) {
      const key = keys?.[i] ?? '';
      const child = members[i];
      minBytes += key.length + (typeof child === 'string' ? child.length : 0);
      if (minBytes > bounds.bytes) return tooLarge;
      if (forbiddenKeys.includes(key)) return `must not have a key named "${key}"`;
      if (!isCleanText(key)) return 'must not have a key with a NUL or a lone surrogate';
      if (typeof child === 'string' && !isCleanText(child)) return 'must not contain a NUL or a lone surrogate';
      if (typeof child === 'object' && child !== null) open.push({ node: child, depth: depth + 1 });
    }
  }
  return Buffer.byteLength(JSON.stringify(value)) > bounds.bytes ? tooLarge : undefined;
}
