import { join } from 'node:path';
import { parentPort } from 'node:worker_threads';
import { type ClipTokenizer, countChunks, type TaughtWord, tokenizerOf } from '@app/diffusion/files';
import { LRUCache } from 'lru-cache';

/** Texts to count with the tokenizer of a model. */
export interface CountingOrder {
  id: number;
  modelFolder: string;
  /** Hash of the folder's content, which identifies the tokenizer. */
  modelHash: string;
  texts: readonly string[];
  weighting: boolean;
  /** Words that stand for several tokens. */
  words?: readonly TaughtWord[];
}

/** The thread's answer to a request: a number for each text, and the most bytes that always fit in one chunk. */
export type Counted = { id: number; chunks: number[]; chunkBytes: number } | { id: number; error: string };

/** A few megabytes each. */
const tokenizers = new LRUCache<string, Promise<ClipTokenizer>>({ max: 8 });

function keptTokenizer({ modelFolder, modelHash }: CountingOrder): Promise<ClipTokenizer> {
  const tokenizer = tokenizers.get(modelHash) ?? tokenizerOf(join(modelFolder, 'tokenizer'), { padToken: 'end' });
  tokenizers.set(modelHash, tokenizer);
  tokenizer.catch(() => tokenizers.delete(modelHash));
  return tokenizer;
}

async function count(order: CountingOrder): Promise<Counted> {
  try {
    const plain = await keptTokenizer(order);
    const { id, words = [], texts, weighting } = order;
    const tokenizer = words.length > 0 ? plain.withWords(words) : plain;
    const chunks = texts.map((text) => countChunks(text, tokenizer, weighting));
    return { id, chunks, chunkBytes: plain.hasAddedWords ? 0 : plain.maxLength - 2 };
  } catch (error) {
    return { id: order.id, error: (error as Error).message };
  }
}

parentPort?.on(
  'message',
  (order: CountingOrder) => void count(order).then((counted) => parentPort?.postMessage(counted)),
);
