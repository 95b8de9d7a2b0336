const quotationMark = 0x22;
const comma = 0x2c;
const backslash = 0x5c;
const space = 0x20;
/** A bracket and a brace differ in one bit, and so do those that close. */
const bit = 0x20;
const open = 0x7b;
const close = 0x7d;

/**
 * What is too large about JSON in UTF-8: how deep arrays and objects lie in one another, or how many values there are. It is told
 * from the bytes, before anything is made of them: to make 300,000 objects takes a hundred times as long. Of text that is not JSON it
 * may say nothing.
 */
export function jsonSizeProblem(json: Uint8Array, most: { levels: number; values: number }): string | undefined {
  let level = 0;
  let deepest = 0;
  let values = 1;
  let isText = false;
  /** Whether nothing stands in what was opened last. */
  let isEmpty = false;
  for (let at = 0; at < json.length; at++) {
    const byte = json[at];
    if (isText) {
      if (byte === backslash) at++;
      else if (byte === quotationMark) isText = false;
    } else if ((byte | bit) === open) {
      if (++level > deepest) deepest = level;
      isEmpty = true;
    } else if ((byte | bit) === close) {
      level--;
      if (!isEmpty) values++;
      isEmpty = false;
    } else if (byte > space) {
      isEmpty = false;
      if (byte === comma) values++;
      else if (byte === quotationMark) isText = true;
    }
  }
  if (values > most.values) return `must have at most ${most.values} values, got ${values}`;
  // What is never closed is not JSON.
  return deepest > most.levels && level === 0 ? `must have at most ${most.levels} levels, got ${deepest}` : undefined;
}
