/** A text prepared for comparison, character by character: in Unicode's NFC form and without regard to case. */
export interface FoldedText {
  /** A base character with its marks. */
  units: readonly string[];
  /** Where each unit begins in the original text, in UTF-16 units; one more for the end. */
  offsets: readonly number[];
}

/** What NFC combines: Hangul letters into a syllable, a character and its marks. */
const joined = /[\u1100-\u115f\uac00-\ud7a3][\u1160-\u11ff]*\p{M}*|\P{M}\p{M}*|\p{M}+/gsu;

/** Splits a text for comparison. */
export function foldText(text: string): FoldedText {
  const parts = text.match(joined) ?? [];
  const offsets = [0];
  for (const part of parts) offsets.push(offsets[offsets.length - 1] + part.length);
  return { units: parts.map(foldUnit), offsets };
}

function foldUnit(part: string): string {
  if (part.length === 1 && part < '\u0080') return part.toLowerCase();
  const composed = part.normalize('NFC');
  // Upper case first, so that letters with two lower-case forms compare equal; unless upper case is longer.
  const folded = composed.toUpperCase().toLowerCase();
  return folded.length === composed.length ? folded : composed.toLowerCase();
}

/** Position of a phrase in a text, in UTF-16 units. */
export interface FoundPhrase {
  start: number;
  end: number;
  /** Index of the phrase in the list. */
  index: number;
}

/** Of a unit its base character counts: a space with a mark is a space. */
const wordCharacter = /^[\p{L}\p{M}\p{N}_]/u;
const unspacedScripts = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]/u;
const blank = /^\s$/u;
/** Between two words of a phrase: any number of spaces and hyphens. */
const gap = Symbol('gap');

/**
 * A phrase to find in a text, in any case and in Unicode's NFC form. Its words match as whole words, except in
 * scripts that write no spaces between words, and may be separated by spaces or hyphens. Both phrase and text
 * come from callers, so a bit-parallel automaton searches: the time is the text's length times a 32nd of the
 * phrase's, whatever the two are.
 * Source: the Shift-And algorithm (Baeza-Yates, Gonnet 1992) with repeatable characters (Navarro, Raffinot 2002).
 */
export class Phrase {
  private readonly forward: Automaton;
  private readonly backward: Automaton;
  private readonly needsEdge: { before: boolean; after: boolean };

  constructor(phrase: string) {
    const symbols: (string | typeof gap)[] = [];
    for (const unit of foldText(phrase.trim()).units) {
      if (!blank.test(unit)) symbols.push(unit);
      else if (symbols.at(-1) !== gap) symbols.push(gap);
    }
    const needsEdge = (symbol: string | typeof gap | undefined): boolean =>
      typeof symbol === 'string' && !unspacedScripts.test(symbol);
    this.needsEdge = { before: needsEdge(symbols[0]), after: needsEdge(symbols.at(-1)) };
    this.forward = new Automaton(symbols);
    this.backward = new Automaton(symbols.reverse());
  }

  isIn(text: string): boolean {
    return this.starts(foldText(text)).includes(1);
  }

  /** For each unit of a text, 1 where the phrase begins. */
  starts(text: FoldedText): Uint8Array {
    const starts = new Uint8Array(text.units.length);
    this.backward.reset();
    for (let i = text.units.length - 1; i >= 0; i--)
      if (this.backward.step(text.units[i], this.endsAt(text, i)) && this.beginsAt(text, i)) starts[i] = 1;
    return starts;
  }

  /** The end of the shortest match that begins at a unit. */
  endFrom(text: FoldedText, start: number): number {
    this.forward.reset();
    let i = start;
    while (i < text.units.length && !(this.forward.step(text.units[i], i === start) && this.endsAt(text, i))) i++;
    return i + 1;
  }

  private beginsAt({ units }: FoldedText, i: number): boolean {
    return !this.needsEdge.before || i === 0 || !wordCharacter.test(units[i - 1]);
  }

  private endsAt({ units }: FoldedText, i: number): boolean {
    return !this.needsEdge.after || i === units.length - 1 || !wordCharacter.test(units[i + 1]);
  }
}

/**
 * Matches of several phrases in a text, from the left and without overlap; if several begin at the same position, the
 * first in the list wins.
 */
export function findPhrases(text: string, phrases: readonly Phrase[]): FoundPhrase[] {
  const folded = foldText(text);
  const starts = phrases.map((phrase) => phrase.starts(folded));
  const found: FoundPhrase[] = [];
  for (let i = 0; i < folded.units.length;) {
    const index = starts.findIndex((each) => each[i] === 1);
    if (index < 0) i++;
    else {
      const end = phrases[index].endFrom(folded, i);
      found.push({ start: folded.offsets[i], end: folded.offsets[end], index });
      i = end;
    }
  }
  return found;
}

function isSeparator(unit: string): boolean {
  return unit === ' ' || unit === '-' || blank.test(unit);
}

/**
 * Reads a text unit by unit and reports where a sequence of symbols ends. State i means that the symbols up to
 * the i-th have been read.
 */
class Automaton {
  private readonly masks = new Map<string, Uint32Array>();
  private readonly gaps: Uint32Array;
  private readonly state: Uint32Array;
  private readonly none: Uint32Array;
  private readonly last: number;

  constructor(symbols: readonly (string | typeof gap)[]) {
    const words = Math.ceil(symbols.length / 32);
    [this.gaps, this.state, this.none] = [new Uint32Array(words), new Uint32Array(words), new Uint32Array(words)];
    this.last = symbols.length - 1;
    symbols.forEach((symbol, i) => {
      let mask = this.gaps;
      if (symbol !== gap) this.masks.set(symbol, (mask = this.masks.get(symbol) ?? new Uint32Array(words)));
      mask[i >>> 5] |= 1 << (i & 31);
    });
  }

  reset(): void {
    this.state.fill(0);
  }

  /** @param mayBegin whether the sequence may begin with this unit. @returns whether it ends with this unit */
  step(unit: string, mayBegin: boolean): boolean {
    if (this.last < 0) return false;
    const state = this.state;
    const mask = this.masks.get(unit) ?? this.none;
    const gaps = isSeparator(unit) ? this.gaps : this.none;
    let carry = mayBegin ? 1 : 0;
    for (let word = 0; word < state.length; word++) {
      const before = state[word];
      // A gap is entered like any other symbol, and stays active while separators follow.
      state[word] = (((before << 1) | carry) & (mask[word] | gaps[word])) | (before & gaps[word]);
      carry = before >>> 31;
    }
    return (state[this.last >>> 5] & (1 << (this.last & 31))) !== 0;
  }
}
