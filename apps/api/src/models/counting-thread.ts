import { parentPort } from 'node:worker_threads';
import { type ConditionerFiles, readModelParts, type TaughtWord, type TextLength } from '@app/diffusion/files';
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

/** The length of each text, and the most bytes that certainly fit into one chunk. */
export interface TextLengths {
  lengths: TextLength[];
  certainBytes: number;
}

/** The thread's answer to a request. */
export type Counted = ({ id: number } & TextLengths) | { id: number; error: string };

/** A few megabytes each. */
const conditioners = new LRUCache<string, Promise<ConditionerFiles>>({ max: 8 });

function keptConditioner({ modelFolder, modelHash }: CountingOrder): Promise<ConditionerFiles> {
  // A model that is served has been checked.
  const read = (): Promise<ConditionerFiles> => readModelParts(modelFolder).then(({ conditioner }) => conditioner);
  const conditioner = conditioners.get(modelHash) ?? read();
  conditioners.set(modelHash, conditioner);
  conditioner.catch(() => conditioners.delete(modelHash));
  return conditioner;
}

async function count(order: CountingOrder): Promise<Counted> {
  try {
    const conditioner = await keptConditioner(order);
    const { id, words, texts, weighting } = order;
    const lengths = texts.map((text) => conditioner.lengthOf(text, weighting, words));
    return { id, lengths, certainBytes: conditioner.certainBytes };
  } catch (error) {
    return { id: order.id, error: (error as Error).message };
  }
}

parentPort?.on(
  'message',
  (order: CountingOrder) => void count(order).then((counted) => parentPort?.postMessage(counted)),
);
