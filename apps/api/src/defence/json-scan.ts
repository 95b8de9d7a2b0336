// Attack: a small body with so many fields, levels or objects that parsing it holds up everybody.
import { limits } from '@app/domain';

/** Far deeper than any valid body, but not too deep for recursive code. */
export const maxLevels = 1000;
/** Bytes of an object's shortest member. */
const shortestMember = '"k":0,'.length;
/**
 * Members of one object, in whole thousands: no metadata within its limit has more, and no other object in a body has
 * free keys.
 */
export const maxMembers = Math.ceil(limits.metadataBytes / shortestMember / 1000) * 1000;
/**
 * Objects and arrays in a body: more take too long to parse. A body within all other limits can exceed this one, with a
 * thousand points `{"x":1,"y":2}` in the metadata of each of fifty elements.
 */
export const maxContainers = 50_000;
/**
 * Fields in a body: each new key costs the parser some microseconds. A hundred elements may have two hundred each; only
 * bodies that are almost all metadata can exceed this.
 */
export const maxFields = 20_000;

const [quote, backslash, colon] = [0x22, 0x5c, 0x3a];
const [openBracket, closeBracket, openBrace, closeBrace] = [0x5b, 0x5d, 0x7b, 0x7d];

/**
 * Scans a JSON body in UTF-8 before it is parsed: many fields, levels and objects cost far more to parse and to check
 * than their bytes suggest.
 * @returns `malformed` if it cannot be JSON, a message if it exceeds a limit; undefined if it may be parsed
 */
export function scanJson(bytes: Uint8Array): 'malformed' | { message: string } | undefined {
  /** Members so far of each open object; zeros for arrays. */
  const members = new Uint32Array(maxLevels + 1);
  let depth = 0;
  let deepest = 0;
  let containers = 0;
  let fields = 0;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i];
    if (byte === quote) {
      for (i++; i < bytes.length && bytes[i] !== quote; i++) if (bytes[i] === backslash) i++;
    } else if (byte === openBrace || byte === openBracket) {
      depth++;
      containers++;
      deepest = Math.max(deepest, depth);
      if (depth <= maxLevels) members[depth] = 0;
    } else if (byte === closeBrace || byte === closeBracket) {
      if (--depth < 0) return 'malformed';
    } else if (byte === colon) {
      fields++;
      if (depth <= maxLevels && ++members[depth] > maxMembers)
        return { message: `must have no object of more than ${maxMembers} fields` };
    }
  }
  if (depth > 0) return 'malformed';
  if (fields > maxFields) return { message: `must have at most ${maxFields} fields` };
  if (containers > maxContainers) return { message: `must have at most ${maxContainers} objects and arrays` };
  return deepest > maxLevels ? { message: `must have at most ${maxLevels} levels` } : undefined;
}
