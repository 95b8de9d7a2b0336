/** A text prepared for comparison, character by character: in Unicode's NFC form and without regard to case. */
export interface FoldedText {
  /** A base character with its marks. */
  units: readonly string[];
  /** Where each unit begins in the original text, in UTF-16 units; one more for the end. */
  offsets: readonly number[];
}

/** Sequences that NFC combines: Hangul letters into a syllable, a character and its marks. */
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
  /** In the list of phrases. */
  index: number;
}

/** The base character of a unit decides: a space with a mark is a space. */
const wordCharacter = /^[\p{L}\p{M}\p{N}_]/u;
const unspacedScripts = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]/u;
const blank = /^\s$/u;
/** Between two words of a phrase: any number of spaces and hyphens. */
const gap = 0;

/**
 * A phrase to find in a text, in any case and in Unicode's NFC form. Its words match as whole words, except in
 * scripts that write no spaces between words, and may be separated by spaces or hyphens.
 */
export class Phrase {
  /** A number for each distinct unit, for quick comparisons; that of a gap is 0. */
  private readonly numbers = new Map<string, number>();
  private readonly symbols: number[] = [];
  private readonly needsEdge: { before: boolean; after: boolean };

  constructor(phrase: string) {
    const { units } = foldText(phrase.trim());
    for (const unit of units) {
      if (!blank.test(unit)) {
        if (!this.numbers.has(unit)) this.numbers.set(unit, this.numbers.size + 1);
        this.symbols.push(this.numbers.get(unit)!);
      } else if (this.symbols.at(-1) !== gap) this.symbols.push(gap);
    }
    this.needsEdge = { before: !unspacedScripts.test(units[0]), after: !unspacedScripts.test(units.at(-1) ?? '') };
  }

  isIn(text: string): boolean {
    return this.ends(foldText(text)).some((end) => end > 0);
  }

  /**
   * For each unit of a text, where the shortest match that begins there ends; 0 where none begins. Both texts come from
   * callers, so there is no backtracking: it goes from the last symbol of the phrase to the first, and the ends of what
   * follows a symbol give those with it. The time is the product of the two lengths, whatever the texts.
   */
  ends({ units }: FoldedText): Uint16Array {
    const { before, after } = this.needsEdge;
    const isWord = units.map((unit) => wordCharacter.test(unit));
    const isGap = units.map(isSeparator);
    const numbers = Int32Array.from(units, (unit) => this.numbers.get(unit) ?? -1);
    let ends = new Uint16Array(units.length + 1);
    if (this.symbols.length === 0) return ends;
    for (let i = 1; i <= units.length; i++) if (!after || !isWord[i]) ends[i] = i;
    for (const symbol of this.symbols.toReversed()) {
      const longer = new Uint16Array(units.length + 1);
      for (let i = units.length - 1; i >= 0; i--)
        if (symbol !== gap) longer[i] = numbers[i] === symbol ? ends[i + 1] : 0;
        else if (isGap[i]) longer[i] = ends[i + 1] || longer[i + 1];
      ends = longer;
    }
    return before ? ends.map((end, i) => (isWord[i - 1] ? 0 : end)) : ends;
  }
}

/**
 * Matches of several phrases, from the left and without overlap; of those that begin at the same position, the first in
 * the list wins.
 */
export function findPhrases(text: string, phrases: readonly Phrase[]): FoundPhrase[] {
  const folded = foldText(text);
  const ends = phrases.map((phrase) => phrase.ends(folded));
  const found: FoundPhrase[] = [];
  for (let i = 0; i < folded.units.length;) {
    const index = ends.findIndex((each) => each[i] > 0);
    if (index < 0) i++;
    else {
      const end = ends[index][i];
      found.push({ start: folded.offsets[i], end: folded.offsets[end], index });
      i = end;
    }
  }
  return found;
}

function isSeparator(unit: string): boolean {
  return unit === ' ' || unit === '-' || blank.test(unit);
}
