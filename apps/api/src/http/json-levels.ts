const quotationMark = 0x22;
const backslash = 0x5c;
/** A bracket and a brace differ in one bit, and so do those that close. */
const bit = 0x20;
const open = 0x7b;
const close = 0x7d;

/** Whether JSON in UTF-8 has arrays and objects in one another more than `most` deep. It is told from the bytes, before anything is made of them. */
export function isDeeperThan(most: number, json: Uint8Array): boolean {
  let levels = 0;
  let isText = false;
  for (let at = 0; at < json.length; at++) {
    const byte = json[at];
    if (isText) {
      if (byte === backslash) at++;
      else if (byte === quotationMark) isText = false;
    } else if (byte === quotationMark) isText = true;
    else if ((byte | bit) === open) {
      if (++levels > most) return true;
    } else if ((byte | bit) === close) levels--;
  }
  return false;
}
