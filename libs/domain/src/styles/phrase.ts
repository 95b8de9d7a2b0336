/** A text prepared for comparison, character by character: in Unicode's NFC form and without regard to case. */
export interface FoldedText {
  /** For each base character with its marks, which of `kinds` it is. */
  units: Uint32Array;
  /** Few, however long the text is. */
  kinds: readonly UnitKind[];
  /** Where each unit begins in the original text, in UTF-16 units; one more for the end. */
  offsets: Uint32Array;
}

interface UnitKind {
  folded: string;
  /** Whether it is a part of a word. */
  isWord: boolean;
  /** Whether it may stand between two words of a phrase. */
  isGap: boolean;
}

/** Sequences that NFC combines: Hangul letters into a syllable, a character and its marks. */
const joined = /[\u1100-\u115f\uac00-\ud7a3][\u1160-\u11ff]*\p{M}*|\P{M}\p{M}*|\p{M}+/gsu;
/** The base character of a unit decides: a space with a mark is a space. */
const wordCharacter = /^[\p{L}\p{M}\p{N}_]/u;
const unspacedScripts = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]/u;
const blank = /^\s$/u;

/** Splits a text for comparison. */
export function foldText(text: string): FoldedText {
  const parts = text.match(joined) ?? [];
  const numbers = new Map<string, number>();
  const kinds: UnitKind[] = [];
  const units = new Uint32Array(parts.length);
  const offsets = new Uint32Array(parts.length + 1);
  for (const [i, part] of parts.entries()) {
    let number = numbers.get(part);
    if (number === undefined) {
      number = kinds.push(kindOf(part)) - 1;
      numbers.set(part, number);
    }
    units[i] = number;
    offsets[i + 1] = offsets[i] + part.length;
  }
  return { units, kinds, offsets };
}

function kindOf(part: string): UnitKind {
  const folded = foldUnit(part);
  return { folded, isWord: wordCharacter.test(folded), isGap: folded === '-' || blank.test(folded) };
}

function foldUnit(part: string): string {
  if (part.length === 1 && part < '\u0080') return part.toLowerCase();
  const composed = part.normalize('NFC');
  // Upper case first, so that letters with two lower-case forms compare equal; unless upper case is longer.
  const folded = composed.toUpperCase().toLowerCase();
  return folded.length === composed.length ? folded : composed.toLowerCase();
}

/** Between two words of a phrase: any number of spaces and hyphens. */
const gap = Symbol('gap');
type PhraseSymbol = string | typeof gap;

/** Reads the next unit of a text, by its kind. @returns whether all symbols have been read, up to this unit */
type Read = (kind: number, mayBegin: boolean) => boolean;

/**
 * Finds symbols that follow each other. Both texts come from callers, so there is no backtracking: each symbol has a
 * bit, which says whether all symbols up to it have just been read, and a unit moves all bits at once. The time is that
 * of the text for every 32 symbols, whatever the texts. Source: Baeza-Yates and Gonnet, "A new approach to text
 * searching", 1992.
 */
class SymbolReader {
  /** Bits of the symbols that a unit is, by its folded text. */
  private readonly own = new Map<string, Int32Array>();
  private readonly gaps: Int32Array;
  private readonly none: Int32Array;

  constructor(private readonly symbols: readonly PhraseSymbol[]) {
    const empty = (): Int32Array => new Int32Array(Math.ceil(symbols.length / 32));
    [this.gaps, this.none] = [empty(), empty()];
    for (const [i, symbol] of symbols.entries()) {
      const bits = symbol === gap ? this.gaps : (this.own.get(symbol) ?? empty());
      bits[i >> 5] |= 1 << (i & 31);
      if (symbol !== gap) this.own.set(symbol, bits);
    }
  }

  /** @returns what begins to read a text with units of these kinds */
  of(kinds: readonly UnitKind[]): () => Read {
    const { gaps, none } = this;
    const bitsOf = kinds.map(({ folded, isGap }) => {
      const own = this.own.get(folded) ?? none;
      return isGap ? own.map((bits, i) => bits | gaps[i]) : own;
    });
    const last = this.symbols.length - 1;
    return () => {
      const read = new Int32Array(gaps.length);
      return (kind, mayBegin) => {
        const bits = bitsOf[kind];
        let carry = Number(mayBegin);
        for (let i = 0; i < read.length; i++) {
          const before = read[i];
          // A gap may go on.
          read[i] = ((before << 1) | carry | (before & gaps[i])) & bits[i];
          carry = before >>> 31;
        }
        return ((read[last >> 5] >>> (last & 31)) & 1) === 1;
      };
    };
  }
}

/**
 * A phrase to find in a text, in any case and in Unicode's NFC form. Its words match as whole words, except in
 * scripts that write no spaces between words, and may be separated by spaces or hyphens.
 */
export class Phrase {
  private readonly forwards: SymbolReader;
  private readonly backwards: SymbolReader;
  private readonly isEmpty: boolean;
  private readonly needsEdge: { before: boolean; after: boolean };

  constructor(phrase: string) {
    const { units, kinds } = foldText(phrase.trim());
    const texts = Array.from(units, (unit) => kinds[unit].folded);
    const symbols: PhraseSymbol[] = [];
    for (const text of texts)
      if (!blank.test(text)) symbols.push(text);
      else if (symbols.at(-1) !== gap) symbols.push(gap);
    this.isEmpty = symbols.length === 0;
    this.forwards = new SymbolReader(symbols);
    this.backwards = new SymbolReader(symbols.toReversed());
    this.needsEdge = { before: !unspacedScripts.test(texts[0]), after: !unspacedScripts.test(texts.at(-1) ?? '') };
  }

  isIn(text: string): boolean {
    return this.placesIn(foldText(text)).begins.includes(1);
  }

  /** At which units of a text a match begins, and where the shortest match from there ends. */
  placesIn({ units, kinds }: FoldedText): { begins: Uint8Array; endFrom: (start: number) => number } {
    const begins = new Uint8Array(units.length);
    const isWord = (i: number): boolean => i >= 0 && i < units.length && kinds[units[i]].isWord;
    const mayEndAt = (i: number): boolean => !this.needsEdge.after || !isWord(i);
    const readBack = this.backwards.of(kinds)();
    for (let i = units.length - 1; i >= 0 && !this.isEmpty; i--)
      if (readBack(units[i], mayEndAt(i + 1)) && !(this.needsEdge.before && isWord(i - 1))) begins[i] = 1;
    const readFrom = this.forwards.of(kinds);
    const endFrom = (start: number): number => {
      const read = readFrom();
      let end = start;
      while (!read(units[end], end === start) || !mayEndAt(end + 1)) end++;
      return end + 1;
    };
    return { begins, endFrom };
  }
}

/** Position of a phrase in a text, in UTF-16 units. */
export interface FoundPhrase {
  start: number;
  end: number;
  /** In the list of phrases. */
  index: number;
}

/**
 * Matches of several phrases, from the left and without overlap; of those that begin at the same position, the first in
 * the list wins.
 */
export function findPhrases(text: string, phrases: readonly Phrase[]): FoundPhrase[] {
  const folded = foldText(text);
  const places = phrases.map((phrase) => phrase.placesIn(folded));
  const found: FoundPhrase[] = [];
  for (let i = 0; i < folded.units.length;) {
    const index = places.findIndex(({ begins }) => begins[i] === 1);
    if (index < 0) i++;
    else {
      const end = places[index].endFrom(i);
      found.push({ start: folded.offsets[i], end: folded.offsets[end], index });
      i = end;
    }
  }
  return found;
}
