import type { ClipTokenizer } from './clip-tokenizer';

/** Most rows of a prompt. Memory and time of each step grow with them, and no model was trained with more. */
export const maxChunks = 32;

/** One row for the text encoder: `maxLength` ids, and a weight for each where any differs from 1. */
export interface PromptChunk {
  inputIds: readonly number[];
  weights?: readonly number[];
}

/**
 * Splits a prompt into rows of `maxLength`, each between the begin and end tokens. A text of up to 75
 * tokens is one row, equal to `CLIPTokenizer`'s; a longer one continues in the next row, as in desktop
 * tools, so that no word is lost.
 * @param weighting whether the attention syntax is parsed; otherwise brackets are text
 */
export function chunkPrompt(prompt: string, tokenizer: ClipTokenizer, weighting = false): PromptChunk[] {
  const pieces = weighting ? parsePromptWeights(prompt) : [{ text: prompt, weight: 1 }];
  const ids: number[] = [];
  const weights: number[] = [];
  for (const { text, weight } of pieces)
    for (const id of tokenizer.tokenize(text)) {
      ids.push(id);
      weights.push(weight);
    }
  const room = tokenizer.maxLength - 2;
  const chunks: PromptChunk[] = [];
  for (let from = 0; from === 0 || from < ids.length; from += room) {
    const inputIds = tokenizer.frame(ids.slice(from, from + room));
    const own = weights.slice(from, from + room);
    chunks.push(
      own.every((weight) => weight === 1) ? { inputIds } : { inputIds, weights: frameWeights(own, inputIds) },
    );
  }
  return chunks;
}

/** The number of rows that `chunkPrompt` makes of a prompt, without making them. */
export function countChunks(prompt: string, tokenizer: ClipTokenizer, weighting = false): number {
  const texts = weighting ? parsePromptWeights(prompt).map(({ text }) => text) : [prompt];
  const tokens = texts.reduce((sum, text) => sum + tokenizer.tokenize(text).length, 0);
  return Math.max(1, Math.ceil(tokens / (tokenizer.maxLength - 2)));
}

/** The texts of a picture, and what decides how they are encoded. */
export interface PictureTexts {
  prompt: string;
  negativePrompt?: string | null;
  guidanceScale: number;
  promptWeighting?: boolean;
}

/** Most rows that encoding the texts of a picture takes: those of prompt and negative prompt, with guidance. */
export function rowsOfTexts(texts: PictureTexts, tokenizer: ClipTokenizer): number {
  const { prompt, negativePrompt, guidanceScale, promptWeighting } = texts;
  const encoded = guidanceScale > 1 ? [negativePrompt ?? '', prompt] : [prompt];
  const chunks = encoded.map((text) => countChunks(text, tokenizer, promptWeighting));
  return encoded.length * Math.min(maxChunks, Math.max(...chunks));
}

/** Appends empty chunks to a list, so that a prompt and its negative prompt have the same number. */
export function padChunks(chunks: readonly PromptChunk[], count: number, tokenizer: ClipTokenizer): PromptChunk[] {
  const empty = { inputIds: tokenizer.frame([]) };
  return [...chunks, ...Array.from({ length: count - chunks.length }, () => empty)];
}

function frameWeights(weights: readonly number[], inputIds: readonly number[]): number[] {
  return inputIds.map((_, i) => weights[i - 1] ?? 1);
}

/** A piece of a prompt and its attention; 1 is normal. */
interface WeightedText {
  text: string;
  weight: number;
}

/** Factor of one pair of round brackets, and divisor of one pair of square brackets, as in desktop tools. */
const step = 1.1;
/** Beyond this, float32 embeddings lose their meaning long before they overflow. */
const largestWeight = 10;
const explicitWeight = /^:\s*([+-]?(?:\d+(?:\.\d*)?|\.\d+))\s*\)/;

/**
 * Parses the attention syntax of desktop tools: `(word)` is 1.1, `(word:1.3)` is 1.3, `[word]` is 1 / 1.1; brackets
 * nest and multiply; `\(`, `\)`, `\[`, `\]` and `\\` are the characters themselves. A bracket that is never closed
 * extends to the end; one that was never opened is text. Weights are limited to -10..10.
 */
export function parsePromptWeights(prompt: string): WeightedText[] {
  const texts: string[] = [];
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
    } else text += char;
  }
  flush();
  const [byRound, bySquare] = [round.products(texts.length), square.products(texts.length)];
  return join(texts.map((each, i) => ({ text: each, weight: byRound[i] * bySquare[i] })));
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
