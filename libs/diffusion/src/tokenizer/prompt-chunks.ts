import type { ClipTokenizer } from './clip-tokenizer';
import { parsePromptWeights } from './prompt-weighting';

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
