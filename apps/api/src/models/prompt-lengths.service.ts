import { FieldProblems, limits, UnprocessableError } from '@app/domain';
import type { Finetune } from '@app/domain';
import type { InstalledModel } from '@app/model-store';
import { Injectable } from '@nestjs/common';
import { Turns } from '../records/turns';
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
  /** One text takes hundredths of a second, and a key may send thousands. */
  private readonly turns = new Turns();

  constructor(private readonly counter: TokenCounter) {}

  /**
   * Chunks that each task is drawn with, as many as the longer of its texts takes. A text with fewer bytes than a chunk takes tokens is one chunk;
   * others are counted one task after another, keys in turn, so that the many of one caller do not come before the few of others.
   * @param ownerId whose tasks they are.
   * @param pointerTo the field of a task's text in the body.
   * @throws UnprocessableError `PromptTooLong`
   */
  async check(
    ownerId: string,
    model: Pick<InstalledModel, 'folder' | 'hash'>,
    tasks: readonly TaskTexts[],
    pointerTo: (index: number, field: 'prompt' | 'negative_prompt') => string,
    finetune?: TaughtWord,
  ): Promise<number[]> {
    const problems = new FieldProblems();
    const longest: number[] = [];
    for (const [index, task] of tasks.entries()) {
      const [prompt, negative] = await this.count(ownerId, model, task, finetune);
      for (const [field, chunks] of [['prompt', prompt], ['negative_prompt', negative]] as const)
        if (chunks > limits.promptChunks)
          problems.add(
            pointerTo(index, field),
            undefined,
            `would take ${chunks} chunks of tokens; at most ${limits.promptChunks} can be drawn`,
          );
      // Without guidance the negative prompt is not drawn with.
      longest.push(task.cfg > 1 ? Math.max(prompt, negative) : prompt);
    }
    if (problems.count > 0) throw new UnprocessableError('PromptTooLong', problems.sentence(), problems.list());
    return longest;
  }

  private async count(
    ownerId: string,
    { folder, hash = '' }: Pick<InstalledModel, 'folder' | 'hash'>,
    { prompt, negativePrompt, promptWeighting }: TaskTexts,
    finetune: TaughtWord | undefined,
  ): Promise<number[]> {
    const texts = [prompt, negativePrompt ?? ''];
    const word = taughtWord(finetune);
    const room = this.chunkBytes.get(hash) ?? 0;
    if (texts.every((text) => mostTokens(text, word) <= room)) return [1, 1];
    const order = { modelFolder: folder, modelHash: hash, texts, weighting: promptWeighting, ...(word && { word }) };
    const { chunks, chunkBytes } = await this.turns.take(ownerId, () => this.counter.count(order));
    if (this.chunkBytes.size >= knownModels) this.chunkBytes.clear();
    this.chunkBytes.set(hash, chunkBytes);
    return chunks;
  }
}

function taughtWord(finetune: TaughtWord | undefined): { text: string; vectors: number } | undefined {
  if (finetune?.weightsKind !== 'textual_inversion') return undefined;
  return { text: finetune.token, vectors: Math.min(finetune.weightsVectors ?? 1, mostVectors) };
}

/** More tokens than a text has: one takes a byte at least, but for a word that takes several. */
function mostTokens(text: string, word: { text: string; vectors: number } | undefined): number {
  const normal = text.normalize('NFC').toLowerCase();
  return Buffer.byteLength(normal) * (word && normal.includes(word.text.toLowerCase()) ? word.vectors : 1);
}
