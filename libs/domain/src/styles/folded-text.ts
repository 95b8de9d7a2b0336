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
