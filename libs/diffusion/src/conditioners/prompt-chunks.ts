import type { ClipTokenizer } from '../tokenizer/clip-tokenizer';
import { parsePromptWeights } from './prompt-weights';

/** Most rows of a prompt. Memory and time of each step grow with them, and no model was trained with more. */
export const maxChunks = 32;

/** One row for the text encoder: `maxLength` ids, and a weight for each where any differs from 1. */
export interface PromptChunk {
  inputIds: readonly number[];
  weights?: readonly number[];
}

/**
 * Splits a prompt into rows of `maxLength`, each between the begin and end tokens. A text that one row has room for is
 * equal to `CLIPTokenizer`'s; a longer one continues in the next row, as in desktop tools, so that no word is lost. Two
 * tokenizers of one vocabulary give the same rows but for their padding.
 * @param weighting whether the attention syntax and `BREAK`, which ends a row, are parsed; otherwise they are text
 */
export function chunkPrompt(prompt: string, tokenizer: ClipTokenizer, weighting = false): PromptChunk[] {
  const room = tokenizer.maxLength - 2;
  const chunks: PromptChunk[] = [];
  for (const { ids, weights } of tokenizeParts(prompt, tokenizer, weighting))
    for (let from = 0; from === 0 || from < ids.length; from += room) {
      const inputIds = tokenizer.frame(ids.slice(from, from + room));
      const own = weights.slice(from, from + room);
      chunks.push(
        own.every((weight) => weight === 1) ? { inputIds } : { inputIds, weights: frameWeights(own, inputIds) },
      );
    }
  return chunks;
}

/** The number of rows that `chunkPrompt` makes of a prompt, without making them, and of the tokens in them. */
export function lengthInChunks(
  prompt: string,
  tokenizer: ClipTokenizer,
  weighting = false,
): { chunks: number; tokens: number } {
  const room = tokenizer.maxLength - 2;
  let [chunks, tokens] = [0, 0];
  for (const { ids } of tokenizeParts(prompt, tokenizer, weighting)) {
    chunks += Math.max(1, Math.ceil(ids.length / room));
    tokens += ids.length;
  }
  return { chunks, tokens };
}

/** The tokens of each part of a prompt, with their weights. A `BREAK` at the very end begins no part. */
function tokenizeParts(
  prompt: string,
  tokenizer: ClipTokenizer,
  weighting: boolean,
): { ids: number[]; weights: number[] }[] {
  const parts = weighting ? parsePromptWeights(prompt) : [[{ text: prompt, weight: 1 }]];
  const tokenized = parts.map((pieces) => {
    const ids = pieces.map(({ text }) => tokenizer.tokenize(text));
    return { ids: ids.flat(), weights: ids.flatMap((own, i) => own.map(() => pieces[i].weight)) };
  });
  if (tokenized.length > 1 && tokenized.at(-1)!.ids.length === 0) tokenized.pop();
  return tokenized;
}

/** Appends empty chunks to a list, so that a prompt and its negative prompt have the same number. */
export function padChunks(chunks: readonly PromptChunk[], count: number, tokenizer: ClipTokenizer): PromptChunk[] {
  const empty = { inputIds: tokenizer.frame([]) };
  return [...chunks, ...Array.from({ length: count - chunks.length }, () => empty)];
}

function frameWeights(weights: readonly number[], inputIds: readonly number[]): number[] {
  return inputIds.map((_, i) => weights[i - 1] ?? 1);
}
