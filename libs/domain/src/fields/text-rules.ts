import { limits } from '../common/limits';

/** Characters of a wrong value that a message repeats. */
const shownLength = 40;

/** A wrong value, as a message names it. */
export function shown(value: unknown): string {
  if (Array.isArray(value)) return 'an array';
  if (value === null) return 'null';
  if (typeof value === 'object') return 'an object';
  if (typeof value !== 'string') return JSON.stringify(value);
  return value.length > shownLength ? `${JSON.stringify(value.slice(0, shownLength))}…` : JSON.stringify(value);
}

/** Keys that metadata must not have, because JavaScript treats them specially. */
export const forbiddenKeys: readonly string[] = ['__proto__', 'constructor', 'prototype'];

/** Whether a string can be stored and sent as UTF-8: no NUL and no half of a surrogate pair. */
export function isCleanText(value: string): boolean {
  return !value.includes('\0') && value.isWellFormed();
}

/** Whether a terminal or a log can show a string safely: it has no control character. */
export function isPrintable(value: string): boolean {
  return !/\p{Cc}/u.test(value);
}

/** Whether a string has a letter or a digit of any script. */
export function hasWord(value: string): boolean {
  return /[\p{L}\p{N}]/u.test(value);
}

/** Whether a string has more combining marks in a row than any writing needs. */
export function hasLongMarks(value: string): boolean {
  return (value.match(/\p{M}+/gu) ?? []).some((marks) => characterCount(marks) > limits.marksInARow);
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
 * Why a value is not valid metadata; undefined if it is. The walk stops as soon as the limit is exceeded; only a
 * value that passes it is written as JSON, for its exact size.
 */
export function metadataProblem(value: unknown, bounds: { bytes: number; depth: number }): string | undefined {
  const tooLarge = `must be at most ${bounds.bytes} bytes of JSON`;
  // The value as the only member of an array, which is no level of its own.
  const open: { node: object; depth: number }[] = [{ node: [value], depth: 0 }];
  // A member takes at least two bytes of JSON: itself and a comma or a bracket.
  // The value itself has neither.
  let minBytes = -1;
  for (let next = open.pop(); next; next = open.pop()) {
    const { node, depth } = next;
    if (depth > bounds.depth) return `must have at most ${bounds.depth} levels`;
    const isArray = Array.isArray(node);
    const keys = isArray ? undefined : Object.keys(node);
    const members = isArray ? (node as unknown[]) : Object.values(node as Record<string, unknown>);
    const count = members.length;
    minBytes += 2 * count;
    if (minBytes > bounds.bytes) return tooLarge;
    for (let i = 0; i < count; i++) {
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

/** The document's pattern of a URL: http or https, and no port 0, to which nobody can connect. */
export const urlPattern = '^https?://(?![^/?#]*:0+(?:[/?#]|$))';

/** Characters that RFC 3986 allows in a URI; `URL` accepts and encodes others. */
const uriCharacters = /^(?:[\w\-.~:/?#[\]@!$&'()*+,;=]|%[\da-f]{2})+$/i;

function forbiddenIn(text: string): string {
  for (const found of text.matchAll(/%[\da-f]{2}|./gisu)) if (!uriCharacters.test(found[0])) return found[0];
  return text;
}

/** What is wrong with an absolute http or https URL, as the end of a sentence. */
export function urlProblem(value: unknown, maxLength: number): string | undefined {
  if (typeof value !== 'string') return `must be a string, got ${shown(value)}`;
  if (/^data:/i.test(value))
    return 'must be an http or https URL, not a data: URL; send a picture to POST /v1/uploads, and name its "url"';
  if (value.length > maxLength) return `must be at most ${maxLength} characters, got ${value.length}`;
  const scheme = /^https?:\/\//i.exec(value)?.[0] ?? '';
  const host = value.slice(scheme.length).split(/[/?#]/, 1)[0];
  const rest = value.slice(scheme.length + host.length);
  // A host may have letters of any script (IDN).
  const isHost = host !== '' && !/[\s"<>\\^`{|}\p{C}]/u.test(host);
  if (!scheme || !isHost) return 'must be an absolute http or https URL';
  if (rest !== '' && !uriCharacters.test(rest))
    return `must have ${shown(forbiddenIn(rest))} percent-encoded, as a URL has it`;
  if (!URL.canParse(value)) return 'must be an absolute http or https URL, with a port up to 65535 if any';
  const url = new URL(value);
  if (url.port === '0') return 'must not have the port 0';
  return url.username || url.password ? 'must not contain a user name or password' : undefined;
}
