import { FieldProblems, limits, UnprocessableError } from '@app/domain';
import type { Finetune } from '@app/domain';
import type { InstalledModel } from '@app/model-store';
import { Injectable } from '@nestjs/common';
import { loopTime } from '../work/loop-time';
import { TokenCounter } from './token-counter';

/** The texts of a task that is to be made. */
export interface TaskTexts {
  prompt: string;
  negativePrompt: string | null;
  cfg: number;
  promptWeighting: boolean;
}

/** What of a Fine-Tune decides how many tokens its word takes. */
export type TaughtWord = Pick<Finetune, 'token' | 'weightsKind' | 'weightsVectors'>;

/** Models whose chunks are known in length; far more than anyone installs. */
const knownModels = 100;
/** More vectors than all chunks take need not be counted one by one. */
const mostVectors = limits.promptChunks * 75 + 1;

/** How long prompts are, in chunks of tokens of the model that will draw them. */
@Injectable()
export class PromptLengths {
  /** Bytes of a text that is sure to be one chunk, by the model's hash. */
  private readonly chunkBytes = new Map<string, number>();

  constructor(private readonly counter: TokenCounter) {}

  /**
   * Chunks that each task is drawn with, as many as the longer of its texts takes. A text with fewer bytes than a chunk takes tokens is one
   * chunk; others are counted one after another, each once, so that many of one request do not come before the few of others.
   * @param ownerId whose turn it is to count.
   * @param pointerTo the field of a task's text in the body.
   * @throws UnprocessableError `PromptTooLong`; what `TokenCounter` throws
   */
  async check(
    ownerId: string,
    model: Pick<InstalledModel, 'folder' | 'hash'>,
    tasks: readonly TaskTexts[],
    pointerTo: (index: number, field: 'prompt' | 'negative_prompt') => string,
    finetune?: TaughtWord,
  ): Promise<number[]> {
    const counted = await this.countAll(ownerId, model, tasks, taughtWord(finetune));
    const problems = new FieldProblems();
    const longest = tasks.map((task, index) => {
      const [prompt, negative] = textsOf(task).map((text) => counted.get(keyOf(text)) ?? 1);
      for (const [field, chunks] of [['prompt', prompt], ['negative_prompt', negative]] as const)
        if (chunks > limits.promptChunks)
          problems.add(
            pointerTo(index, field),
            undefined,
            `would take ${chunks} chunks of tokens; at most ${limits.promptChunks} can be drawn`,
          );
      // Without guidance the negative prompt is not drawn with.
      return task.cfg > 1 ? Math.max(prompt, negative) : prompt;
    });
    if (problems.count > 0) throw new UnprocessableError('PromptTooLong', problems.sentence(), problems.list());
    return longest;
  }

  /** Chunks of each text, by its key; many tasks may have the same. */
  private async countAll(
    ownerId: string,
    { folder, hash = '' }: Pick<InstalledModel, 'folder' | 'hash'>,
    tasks: readonly TaskTexts[],
    word: Word | undefined,
  ): Promise<ReadonlyMap<string, number>> {
    const texts = new Map(tasks.flatMap(textsOf).map((text) => [keyOf(text), text]));
    const tokens = new Map<string, number>();
    await loopTime.forEach(ownerId, [...texts], ([key, { text }]) => tokens.set(key, mostTokens(text, word)));
    const counted = new Map<string, number>();
    for (const [key, { text, weighting }] of texts) {
      if (tokens.get(key)! <= (this.chunkBytes.get(hash) ?? 0)) continue;
      const order = { modelFolder: folder, modelHash: hash, texts: [text], weighting, ...(word && { word }) };
      const { chunks, chunkBytes } = await this.counter.count(ownerId, order);
      if (this.chunkBytes.size >= knownModels) this.chunkBytes.clear();
      this.chunkBytes.set(hash, chunkBytes);
      counted.set(key, chunks[0]);
    }
    return counted;
  }
}

interface Text {
  text: string;
  weighting: boolean;
}

/** A word that stands for several tokens. */
interface Word {
  text: string;
  vectors: number;
}

function textsOf({ prompt, negativePrompt, promptWeighting: weighting }: TaskTexts): [Text, Text] {
  return [
    { text: prompt, weighting },
    { text: negativePrompt ?? '', weighting },
  ];
}

function keyOf({ text, weighting }: Text): string {
  return `${weighting} ${text}`;
}

function taughtWord(finetune: TaughtWord | undefined): Word | undefined {
  if (finetune?.weightsKind !== 'textual_inversion') return undefined;
  return { text: finetune.token, vectors: Math.min(finetune.weightsVectors ?? 1, mostVectors) };
}

/** More tokens than a text has: one takes a byte at least, but for a word that takes several. */
function mostTokens(text: string, word: Word | undefined): number {
  const normal = text.normalize('NFC').toLowerCase();
  return Buffer.byteLength(normal) * (word && normal.includes(word.text.toLowerCase()) ? word.vectors : 1);
}
