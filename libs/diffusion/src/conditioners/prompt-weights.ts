/** A piece of a prompt and its attention; 1 is normal. */
export interface WeightedText {
  text: string;
  weight: number;
}

/** Factor of one pair of round brackets, and divisor of one pair of square brackets, as in desktop tools. */
const step = 1.1;
/** Beyond this, float32 embeddings lose their meaning long before they overflow. */
const largestWeight = 10;
const explicitWeight = /^:\s*([+-]?(?:\d+(?:\.\d*)?|\.\d+))\s*\)/;

/** The word in capitals, by itself. */
const breakWord = /(?<![\p{L}\p{N}_])BREAK(?![\p{L}\p{N}_])/uy;

/**
 * Parses the attention syntax of desktop tools: `(word)` is 1.1, `(word:1.3)` is 1.3, `[word]` is 1 / 1.1; brackets
 * nest and multiply; `\(`, `\)`, `\[`, `\]` and `\\` are the characters themselves. A bracket that is never closed
 * extends to the end; one that was never opened is text. Weights are limited to -10..10.
 * @returns the pieces of each part of the prompt: a `BREAK` ends a part. Brackets may reach over it.
 */
export function parsePromptWeights(prompt: string): WeightedText[][] {
  const texts: string[] = [];
  /** Where parts begin, in `texts`. */
  const parts = [0];
  const round = new Brackets(step);
  const square = new Brackets(1 / step);
  let text = '';
  const flush = () => {
    if (text !== '') texts.push(text);
    text = '';
  };

  for (let i = 0; i < prompt.length; i++) {
    const char = prompt[i];
    const explicit = char === ':' && round.isOpen ? explicitWeight.exec(prompt.slice(i, i + 32)) : null;
    breakWord.lastIndex = i;
    if (char === '\\' && '()[]\\'.includes(prompt[i + 1] ?? ' ')) text += prompt[++i];
    else if (char === '(' || char === '[') {
      flush();
      (char === '(' ? round : square).open(texts.length);
    } else if (explicit) {
      flush();
      round.close(texts.length, Number(explicit[1]));
      i += explicit[0].length - 1;
    } else if ((char === ')' && round.isOpen) || (char === ']' && square.isOpen)) {
      flush();
      (char === ')' ? round : square).close(texts.length);
    } else if (char === 'B' && breakWord.test(prompt)) {
      flush();
      parts.push(texts.length);
      i += 'BREAK'.length - 1;
    } else text += char;
  }
  flush();
  const [byRound, bySquare] = [round.products(texts.length), square.products(texts.length)];
  const pieces = texts.map((each, i) => ({ text: each, weight: byRound[i] * bySquare[i] }));
  return parts.map((from, part) => join(pieces.slice(from, parts[part + 1])));
}

/**
 * The brackets of one kind: what each encloses, and its factor. Brackets of one kind are nested, but a round and a
 * square one may overlap, so each kind is processed separately, once.
 */
class Brackets {
  private readonly all: { from: number; to: number; factor: number }[] = [];
  private readonly opened: { from: number; to: number; factor: number }[] = [];

  /** @param factor of a bracket without a weight */
  constructor(private readonly factor: number) {}

  get isOpen(): boolean {
    return this.opened.length > 0;
  }

  /** @param from the first piece inside */
  open(from: number): void {
    const bracket = { from, to: Infinity, factor: this.factor };
    this.all.push(bracket);
    this.opened.push(bracket);
  }

  /** Closes the innermost one. @param to the first piece after it */
  close(to: number, factor = this.factor): void {
    Object.assign(this.opened.pop()!, { to, factor });
  }

  /** The product of all enclosing brackets' factors, for each piece. */
  products(pieces: number): number[] {
    const around: { to: number; product: number }[] = [];
    let next = 0;
    return Array.from({ length: pieces }, (_, piece) => {
      while (around.length > 0 && around[around.length - 1].to <= piece) around.pop();
      for (; next < this.all.length && this.all[next].from <= piece; next++) {
        const { to, factor } = this.all[next];
        if (to > piece) around.push({ to, product: (around.at(-1)?.product ?? 1) * factor });
      }
      return around.at(-1)?.product ?? 1;
    });
  }
}

/** Limits the weights and joins neighbours of equal weight, so that plain text stays one piece. */
function join(pieces: WeightedText[]): WeightedText[] {
  const joined: WeightedText[] = [];
  for (const { text, weight } of pieces) {
    const bounded = Math.min(largestWeight, Math.max(-largestWeight, weight));
    const last = joined.at(-1);
    if (last?.weight === bounded) last.text += text;
    else joined.push({ text, weight: bounded });
  }
  return joined;
}
