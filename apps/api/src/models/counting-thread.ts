import { parentPort } from 'node:worker_threads';
import { type ConditionerFiles, readModelFolder, type TaughtWord } from '@app/diffusion/files';
import { LRUCache } from 'lru-cache';

/** Texts to count in tokens of a model. */
export interface CountingOrder {
  id: number;
  modelFolder: string;
  /** Of the folder's content; it identifies the model. */
  modelHash: string;
  texts: readonly string[];
  weighting: boolean;
  /** Words that stand for several tokens. */
  words?: readonly TaughtWord[];
}

/**
 * How a model reads texts: the chunks of each text, the most that it reads, and the most bytes that always fit in one.
 */
export interface TextChunks {
  chunks: number[];
  mostChunks: number;
  chunkBytes: number;
}

/** The thread's answer to a request. */
export type Counted = ({ id: number } & TextChunks) | { id: number; error: string };

/** A few megabytes each. */
const conditioners = new LRUCache<string, Promise<ConditionerFiles>>({ max: 8 });

function keptConditioner({ modelFolder, modelHash }: CountingOrder): Promise<ConditionerFiles> {
  const read = (): Promise<ConditionerFiles> => readModelFolder(modelFolder).then(({ conditioner }) => conditioner);
  const conditioner = conditioners.get(modelHash) ?? read();
  conditioners.set(modelHash, conditioner);
  conditioner.catch(() => conditioners.delete(modelHash));
  return conditioner;
}

async function count(order: CountingOrder): Promise<Counted> {
  try {
    const conditioner = await keptConditioner(order);
    const { id, words, texts, weighting } = order;
    const { mostChunks, chunkTokens, hasAddedWords } = conditioner;
    const chunks = texts.map((text) => conditioner.countChunks(text, weighting, words));
    return { id, chunks, mostChunks, chunkBytes: hasAddedWords ? 0 : chunkTokens };
  } catch (error) {
    return { id: order.id, error: (error as Error).message };
  }
}

parentPort?.on(
  'message',
  (order: CountingOrder) => void count(order).then((counted) => parentPort?.postMessage(counted)),
);
