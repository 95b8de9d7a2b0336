import type { TaughtWord, TextLength } from '@app/diffusion/files';
import { FieldProblems, type Finetune } from '@app/domain';
import type { InstalledModel } from '@app/model-store';
import { Injectable } from '@nestjs/common';
import { loopTime } from '../defence/loop-time';
import { TokenCounter } from './token-counter';

/** The texts of a task to be created. */
export interface TaskTexts {
  prompt: string;
  negativePrompt: string | null;
  cfg: number;
  promptWeighting: boolean;
}

/** What decides how many tokens a Fine-Tune's word takes. */
export type TaughtToken = Pick<Finetune, 'token' | 'weightsKind' | 'weightsVectors'>;

/** Far more than anyone installs. */
const knownModels = 100;
/** No model reads this many: more need not be counted exactly. */
const maxVectors = 4096;

/** Counts the chunks of prompts, in tokens of the model that will draw them. */
@Injectable()
export class PromptLengths {
  /** The most bytes of a text that certainly fit into one chunk, by the model's hash. */
  private readonly certainBytes = new Map<string, number>();

  constructor(private readonly counter: TokenCounter) {}

  /**
   * Chunks of each task: those of the longer of its texts. A text with fewer bytes than a chunk has tokens is one
   * chunk, unless a `BREAK` may end it. Others are counted one after another, each once, so that a request with many
   * texts does not delay one with few.
   * @param ownerId whose turn it is to count.
   * @param pointerTo the field of a task's text in the body.
   * @throws UnprocessableError `PromptTooLong`; what `TokenCounter` throws
   */
  async check(
    ownerId: string,
    model: Pick<InstalledModel, 'folder' | 'hash'>,
    tasks: readonly TaskTexts[],
    pointerTo: (index: number, field: 'prompt' | 'negative_prompt') => string,
    finetunes: readonly TaughtToken[] = [],
  ): Promise<number[]> {
    const counted = await this.countAll(ownerId, model, tasks.flatMap(textsOf), finetunes.flatMap(addedWord));
    const problems = new FieldProblems();
    const longest = tasks.map((task, index) => {
      const [prompt, negative] = textsOf(task).map((text) => counted.get(keyOf(text)) ?? oneChunk);
      for (const [field, { problem }] of [
        ['prompt', prompt],
        ['negative_prompt', negative],
      ] as const)
        if (problem !== undefined) problems.add(pointerTo(index, field), undefined, problem);
      return isGuided(task) ? Math.max(prompt.chunks, negative.chunks) : prompt.chunks;
    });
    problems.refuseIfAny('PromptTooLong');
    return longest;
  }

  /**
   * A caption is learnt as one chunk.
   * @throws UnprocessableError `PromptTooLong` for a longer one; what `TokenCounter` throws
   */
  async checkCaptions(
    ownerId: string,
    model: Pick<InstalledModel, 'folder' | 'hash'>,
    captions: readonly string[],
  ): Promise<void> {
    const texts = captions.map((text) => ({ text, weighting: false }));
    const counted = await this.countAll(ownerId, model, texts, []);
    const problems = new FieldProblems();
    for (const [index, text] of texts.entries()) {
      const { chunks, problem } = counted.get(keyOf(text)) ?? oneChunk;
      if (chunks > 1 || problem !== undefined)
        problems.add(`/captions/${index}`, undefined, 'has more tokens than the model reads at once; use fewer words');
    }
    problems.refuseIfAny('PromptTooLong');
  }

  /** The number of tokens of a text. @throws what `TokenCounter` throws */
  async tokensOf(
    ownerId: string,
    { folder, hash = '' }: Pick<InstalledModel, 'folder' | 'hash'>,
    text: string,
  ): Promise<number> {
    const order = { modelFolder: folder, modelHash: hash, texts: [text], weighting: false };
    const { lengths } = await this.counter.count(ownerId, order);
    return lengths[0].tokens;
  }

  /** The length of each text, by key; one that is missing is certainly one chunk. Equal texts are counted once. */
  private async countAll(
    ownerId: string,
    { folder, hash = '' }: Pick<InstalledModel, 'folder' | 'hash'>,
    all: readonly Text[],
    words: readonly TaughtWord[],
  ): Promise<ReadonlyMap<string, Chunks>> {
    const texts = new Map(all.map((text) => [keyOf(text), text]));
    const tokens = new Map<string, number>();
    await loopTime.forEach(ownerId, [...texts], ([key, { text }]) => tokens.set(key, maxTokens(text, words)));
    const counted = new Map<string, Chunks>();
    for (const [key, { text, weighting }] of texts) {
      const mayBreak = weighting && text.includes('BREAK');
      if (!mayBreak && tokens.get(key)! <= (this.certainBytes.get(hash) ?? 0)) continue;
      const order = { modelFolder: folder, modelHash: hash, texts: [text], weighting, words };
      const { lengths, certainBytes } = await this.counter.count(ownerId, order);
      if (this.certainBytes.size >= knownModels) this.certainBytes.clear();
      this.certainBytes.set(hash, certainBytes);
      counted.set(key, lengths[0]);
    }
    return counted;
  }
}

type Chunks = Omit<TextLength, 'tokens'>;

const oneChunk: Chunks = { chunks: 1 };

/** Without guidance the negative prompt is not used. */
const isGuided = ({ cfg }: TaskTexts): boolean => cfg > 1;

interface Text {
  text: string;
  weighting: boolean;
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

function addedWord({ token, weightsKind, weightsVectors }: TaughtToken): TaughtWord[] {
  if (weightsKind !== 'textual_inversion') return [];
  return [{ word: token, vectors: Math.min(weightsVectors ?? 1, maxVectors) }];
}

/**
 * An upper bound: each token takes at least one byte, unless a word stands for several tokens. Some models read the text
 * in small letters, which may take fewer bytes.
 */
function maxTokens(text: string, words: readonly TaughtWord[]): number {
  const normal = text.normalize('NFC');
  const small = normal.toLowerCase();
  const used = words.filter(({ word }) => small.includes(word.toLowerCase()));
  const bytes = Math.max(...[normal, small].map((each) => Buffer.byteLength(each)));
  return bytes * Math.max(1, ...used.map(({ vectors }) => vectors));
}
