interface AddedWord {
  text: string;
  ids: readonly number[];
  /** Whether a letter or digit beside it would make it part of another word. */
  needsEdge: { before: boolean; after: boolean };
}

interface FoundWord {
  start: number;
  end: number;
  ids: readonly number[];
}

const wordCharacter = /[\p{L}\p{N}_]/u;
/** Suffix of the name of one vector of a word. */
const vectorNumber = /_\d{1,4}/y;

/**
 * Words that textual inversion added to a vocabulary. A word with several vectors is listed as `word`, `word_1`,
 * `word_2` and so on; typing `word` stands for all of them, as in diffusers' `maybe_convert_prompt`. Unlike there, only
 * whole words match: an added `cat` does not change `catalogue`.
 */
export class AddedTokens {
  private readonly ids: ReadonlyMap<string, number>;
  /** Without the names of single vectors, of which a word may have dozens. */
  private readonly words: readonly AddedWord[];

  /** @param ids token to id, at least one */
  constructor(ids: Readonly<Record<string, number>>) {
    this.ids = new Map(Object.entries(ids).map(([token, id]) => [lowerCase(token), id]));
    const isVector = (token: string): boolean => this.ids.has(token.replace(/_\d+$/, '')) && /_\d+$/.test(token);
    this.words = [...this.ids.keys()]
      .filter((token) => !isVector(token))
      .sort((a, b) => b.length - a.length)
      .map((text) => this.word(text));
  }

  /** Ids of a text; `encode` returns those of the parts between added words. */
  tokenize(text: string, encode: (part: string) => number[]): number[] {
    const lower = lowerCase(text);
    const ids: number[] = [];
    let rest = 0;
    const append = (more: readonly number[]): void => {
      for (const id of more) ids.push(id);
    };
    // The search for each word continues where the last one ended, so that no part of the text is
    // searched twice for it.
    const next = this.words.map((word) => this.find(word, lower, 0));
    for (;;) {
      const found = next.reduce(
        (first, other) => (other && !(first && first.start <= other.start) ? other : first),
        undefined,
      );
      if (!found) break;
      append(encode(text.slice(rest, found.start)));
      append(found.ids);
      rest = found.end;
      for (const [i, other] of next.entries())
        if (other && other.start < rest) next[i] = this.find(this.words[i], lower, rest);
    }
    append(encode(text.slice(rest)));
    return ids;
  }

  private word(text: string): AddedWord {
    const ids: number[] = [];
    for (let id = this.ids.get(text), n = 1; id !== undefined; id = this.ids.get(`${text}_${n++}`)) ids.push(id);
    const characters = [...text];
    const needsEdge = { before: wordCharacter.test(characters[0]), after: wordCharacter.test(characters.at(-1)!) };
    return { text, ids, needsEdge };
  }

  private find(word: AddedWord, text: string, from: number): FoundWord | undefined {
    for (let start = text.indexOf(word.text, from); start >= 0; start = text.indexOf(word.text, start + 1)) {
      if (word.needsEdge.before && isWordBefore(text, start)) continue;
      const end = start + word.text.length;
      vectorNumber.lastIndex = end;
      const vector = vectorNumber.exec(text)?.[0] ?? '';
      if (vector !== '' && this.ids.has(word.text + vector) && !isWordAt(text, end + vector.length))
        return { start, end: end + vector.length, ids: this.word(word.text + vector).ids };
      if (!word.needsEdge.after || !isWordAt(text, end)) return { start, end, ids: word.ids };
    }
    return undefined;
  }
}

/** The text in lower case, character by character, so that positions stay the same. */
function lowerCase(text: string): string {
  const lower = text.toLowerCase();
  if (lower.length === text.length) return lower;
  return Array.from(text, (char) => (char.toLowerCase().length === char.length ? char.toLowerCase() : char)).join('');
}

function isWordAt(text: string, at: number): boolean {
  return at < text.length && wordCharacter.test(String.fromCodePoint(text.codePointAt(at)!));
}

function isWordBefore(text: string, at: number): boolean {
  const isPair = at > 1 && text.codePointAt(at - 2)! > 0xffff;
  return at > 0 && isWordAt(text, isPair ? at - 2 : at - 1);
}

/**
 * The added tokens plus one word whose vectors have the ids from `first` on. A known word is replaced, with all its
 * vectors; case is ignored.
 */
export function wordsWith(
  added: Readonly<Record<string, number>>,
  word: string,
  vectors: number,
  first: number,
): Record<string, number> {
  const own = lowerCase(word);
  const isReplaced = (name: string): boolean =>
    name === own || (name.startsWith(`${own}_`) && /^\d+$/.test(name.slice(own.length + 1)));
  const kept = Object.entries(added).filter(([name]) => !isReplaced(lowerCase(name)));
  const taught = Array.from({ length: vectors }, (_, i) => [i === 0 ? own : `${own}_${i}`, first + i] as const);
  return Object.fromEntries([...kept, ...taught]);
}
