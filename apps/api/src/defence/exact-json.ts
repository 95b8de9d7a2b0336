// No attack: numbers and doubled keys that `JSON.parse` would change silently, found in a pass that is needed anyway.
import { type FieldProblems, pointerTo } from '@app/domain';

/**
 * A number of at most this many significant digits comes back from a double as it was written, unless its magnitude is
 * near the limits of a double: up to 10^300.
 */
const safeDigits = 15;
const safeLength = 30;
const safeExponent = 270;
/** Characters of a number that a message repeats. */
const shownLength = 40;

const [quote, backslash, comma, minus, plus, point] = [0x22, 0x5c, 0x2c, 0x2d, 0x2b, 0x2e];
const [openBracket, closeBracket, openBrace, closeBrace] = [0x5b, 0x5d, 0x7b, 0x7d];
const [zero, nine, upperE, lowerE] = [0x30, 0x39, 0x45, 0x65];

interface Level {
  /** Keys of an object so far; undefined for an array. */
  keys?: Set<string>;
  /** Of the current value. */
  at: string | number;
}

/**
 * Finds what `JSON.parse` would change silently: a number that a double does not hold as written, -0, and a key that an
 * object has twice. One pass over the text; the limits of `scanJson` bound the set of keys.
 * @param text valid JSON that `scanJson` has accepted.
 */
export function findInexact(text: string, problems: FieldProblems): void {
  const levels: Level[] = [];
  let isKey = false;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    const level = levels.at(-1);
    if (code === quote) {
      const end = endOfString(text, i);
      if (isKey && level?.keys) {
        level.at = keyOf(text.slice(i, end + 1));
        if (level.keys.has(level.at)) add(levels, 'is sent twice', problems);
        level.keys.add(level.at);
        isKey = false;
      }
      i = end;
    } else if (code === openBrace || code === openBracket) {
      levels.push(code === openBrace ? { keys: new Set(), at: '' } : { at: 0 });
      isKey = code === openBrace;
    } else if (code === closeBrace || code === closeBracket) {
      levels.pop();
      isKey = false;
    } else if (code === comma && level) {
      if (level.keys) isKey = true;
      else (level.at as number)++;
    } else if (code === minus || (code >= zero && code <= nine)) {
      const end = endOfNumber(text, i);
      const problem = isHeld(text, i, end) ? undefined : inexactness(text.slice(i, end), isFree(levels));
      if (problem) add(levels, problem, problems);
      i = end - 1;
    }
  }
}

/** A pointer may be long: it is written only if the problem is listed. */
function add(levels: readonly Level[], message: string, problems: FieldProblems): void {
  const listed = problems.isFull ? [] : levels;
  problems.add(
    listed.reduce((pointer, { at }) => pointerTo(pointer, at), ''),
    undefined,
    message,
  );
}

function keyOf(quoted: string): string {
  return quoted.includes('\\') ? (JSON.parse(quoted) as string) : quoted.slice(1, -1);
}

function endOfString(text: string, start: number): number {
  let i = start + 1;
  while (text.charCodeAt(i) !== quote) i += text.charCodeAt(i) === backslash ? 2 : 1;
  return i;
}

function endOfNumber(text: string, start: number): number {
  let i = start + 1;
  for (; i < text.length; i++) {
    const code = text.charCodeAt(i);
    const isDigit = code >= zero && code <= nine;
    if (!isDigit && code !== point && code !== lowerE && code !== upperE && code !== plus && code !== minus) break;
  }
  return i;
}

/**
 * Whether a double surely holds a number: few digits, a small exponent, and not -0. Decided in one pass, because a body
 * may have hundreds of thousands.
 */
function isHeld(text: string, start: number, end: number): boolean {
  if (end - start > safeLength) return false;
  const isNegative = text.charCodeAt(start) === minus;
  let digits = 0;
  let exponent = 0;
  let isInExponent = false;
  for (let i = isNegative ? start + 1 : start; i < end; i++) {
    const code = text.charCodeAt(i);
    if (code === lowerE || code === upperE) isInExponent = true;
    else if (code < zero || code > nine) continue;
    else if (isInExponent) exponent = 10 * exponent + code - zero;
    else if (digits > 0 || code !== zero) digits++;
  }
  return digits <= safeDigits && exponent <= safeExponent && !(isNegative && digits === 0);
}

/** Whether the current value is metadata or inside it, where the caller chooses its type. */
function isFree(levels: readonly Level[]): boolean {
  return levels.some(({ at }) => at === 'metadata');
}

/**
 * What is wrong with a decimal number as written; undefined if nothing is.
 * @param maybeText whether a string could be sent in its place.
 */
export function inexactness(written: string, maybeText = false): string | undefined {
  const value = Number(written);
  if (String(value) === written) return undefined;
  const shown = written.length > shownLength ? `${written.slice(0, shownLength)}…` : written;
  const [digits, exponent] = decimalOf(written);
  if (digits === '') return written.startsWith('-') ? `must not be ${shown}: JSON libraries drop its sign` : undefined;
  if (Number.isFinite(value)) {
    const [keptDigits, keptExponent] = decimalOf(String(value));
    if (digits === keptDigits && exponent === keptExponent) return undefined;
  }
  const kept = Number.isFinite(value) ? `which would become ${value}` : 'which is beyond its range';
  return `must be a number that a double holds as it is written${maybeText ? ', or a string' : ''}; got ${shown}, ${kept}`;
}

/** The significant digits of a decimal number, and the power of ten of the last of them. */
function decimalOf(written: string): [digits: string, exponent: number] {
  const [mantissa, power = '0'] = written.replace('-', '').toLowerCase().split('e');
  // `replace` may have removed the exponent's sign instead of the number's, so it is looked up in `written`.
  const sign = /e-/i.test(written) ? -1 : 1;
  const [whole, fraction = ''] = mantissa.split('.');
  const all = whole + fraction;
  let [first, last] = [0, all.length];
  while (all[first] === '0') first++;
  while (last > first && all[last - 1] === '0') last--;
  const digits = all.slice(first, last);
  if (digits === '') return ['', 0];
  return [digits, sign * Math.abs(Number(power)) - fraction.length + (all.length - last)];
}
