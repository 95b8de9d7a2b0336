/**
 * Words that textual inversion added to a vocabulary. A word of several vectors is listed as `word`, `word_1`, `word_2` and on; typing
 * `word` stands for all of them, as in diffusers' `maybe_convert_prompt`. Unlike there, only whole words count: an added `cat`
 * leaves `catalogue` alone.
 */
export class AddedTokens {
  readonly #ids: ReadonlyMap<string, number>;
  readonly #pattern: RegExp;

  /** @param ids token to id, at least one */
  constructor(ids: Readonly<Record<string, number>>) {
    this.#ids = new Map(Object.entries(ids).map(([token, id]) => [token.toLowerCase(), id]));
    const longestFirst = [...this.#ids.keys()].sort((a, b) => b.length - a.length);
    this.#pattern = new RegExp(`(${longestFirst.map(wholeWord).join('|')})`, 'giu');
  }

  /** Ids of a text; `encode` gives those of the parts between added words. */
  tokenize(text: string, encode: (part: string) => number[]): number[] {
    // Splitting by a pattern with one group leaves what matched it at the odd places.
    return text
      .split(this.#pattern)
      .flatMap((part, i) => (i % 2 === 1 ? this.#vectors(part.toLowerCase()) : encode(part)));
  }

  #vectors(token: string): number[] {
    const ids: number[] = [];
    for (let id = this.#ids.get(token), n = 1; id !== undefined; id = this.#ids.get(`${token}_${n++}`)) ids.push(id);
    return ids;
  }
}

const wordCharacter = '[\\p{L}\\p{N}_]';

function wholeWord(token: string): string {
  const isWord = (char: string | undefined) => new RegExp(wordCharacter, 'u').test(char ?? '');
  const escaped = token.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
  const characters = [...token];
  const before = isWord(characters[0]) ? `(?<!${wordCharacter})` : '';
  const after = isWord(characters.at(-1)) ? `(?!${wordCharacter})` : '';
  return before + escaped + after;
}
