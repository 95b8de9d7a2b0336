import { LRUCache } from 'lru-cache';
import { cures, ModelFolderError, RequestError } from '../errors';
import type { GraphSession, LoadOptions } from '../sessions/model-session';
import { type BuildGraph, openPart, type PartFiles } from '../sessions/part-graph';
import { float32, floatsOf, int32, int64, type Tensors } from '../sessions/tensor';
import { tried } from '../sessions/tried';
import { areFinite, notFinite } from '../tensor/planes';
import type { LanguageModelTokenizer } from '../tokenizer/language-model-tokenizer';
import type { NamedTensors } from '../weights/named-tensor';
import type { Conditioner, ConditionerFiles, Conditioning, PictureTexts, TextLength } from './conditioner';

/** How a family reads texts with a language model. */
export interface TextReading {
  /** A text in the template that the model reads it in. */
  promptOf: (text: string) => string;
  /** Tokens of a text, its template included, that the models' pipelines read. */
  maxTokens: number;
  /** Tokens that are encoded of a text with so many; the others are padding. */
  encodedTokens: (tokens: number) => number;
  /** The denoiser's inputs for the states of so many encoded tokens. */
  conditioningOf: (states: Float32Array, encoded: number) => EncodedText;
}

/** A language model whose hidden states condition, as a family uses it. */
export interface LanguageModelUse extends TextReading {
  /** From `input_ids` and `attention_mask`, [rows, tokens], to `hidden_states`, [rows, tokens, width]. */
  build: BuildGraph;
  /** Tokens that its table has. */
  vocabularySize: number;
  /** Values of a token that are in memory at once. */
  tokenWidth: number;
}

/** The inputs of the denoiser for a text, and how many tokens they have. */
export interface EncodedText {
  row: Tensors;
  length: number;
}

/** Bytes of encoded texts that are kept for requests with the same text: of FLUX.2 one takes 16 MB. */
const keptBytes = 256 * 2 ** 20;
/** The text that the encoder is tried with; with all of the padding it would take as long as a picture's. */
const trialTokens = 8;

/** A language model before it is loaded, and its tokenizer. */
export class LanguageModelConditionerFiles implements ConditionerFiles, PartFiles {
  readonly part = 'text_encoder';
  readonly encoders = [this];

  constructor(
    readonly tensors: NamedTensors,
    readonly file: string,
    readonly tokenizer: LanguageModelTokenizer,
    readonly use: LanguageModelUse,
  ) {}

  get graphs(): readonly BuildGraph[] {
    return [this.use.build];
  }

  get rowTokens(): number {
    return this.use.maxTokens;
  }

  /** A token takes at least one byte. */
  get certainBytes(): number {
    return this.use.maxTokens - this.tokensOf('').length;
  }

  /** Ids of a text in its template. */
  tokensOf(text: string): number[] {
    return this.tokenizer.tokenize(this.use.promptOf(text));
  }

  lengthOf(text: string): TextLength {
    const { maxTokens } = this.use;
    const { length } = this.tokensOf(text);
    if (length <= maxTokens) return { chunks: 1, tokens: length };
    return {
      chunks: 1,
      tokens: length,
      problem: `takes ${length} tokens of this model; it reads at most ${maxTokens}`,
    };
  }

  callBytes(): number {
    return this.use.maxTokens * this.use.tokenWidth * Float32Array.BYTES_PER_ELEMENT;
  }

  async open(options: LoadOptions): Promise<LanguageModelConditioner> {
    const { build, vocabularySize } = this.use;
    if (this.tokenizer.vocabularySize > vocabularySize)
      throw new ModelFolderError(
        this.file,
        `knows ${vocabularySize} tokens, and its tokenizer has ${this.tokenizer.vocabularySize}`,
        cures.oneModel,
      );
    const session = await openPart(this, build, options, { onCuda: 'bfloat16', isAdapted: false });
    return new LanguageModelConditioner(this, session);
  }
}

/** The texts of requests, each encoded by itself: so a text has the same bits whatever stands beside it. */
export class LanguageModelConditioner implements Conditioner {
  private readonly cache = new LRUCache<string, EncodedText>({
    maxSize: keptBytes,
    sizeCalculation: ({ row }) =>
      Object.values(row).reduce((sum, { data }) => sum + (data as Uint8Array).byteLength, 1),
  });

  constructor(
    private readonly files: LanguageModelConditionerFiles,
    private readonly session: GraphSession,
  ) {}

  get spent(): GraphSession['spent'] {
    return this.session.spent;
  }

  async encode({ prompt, negativePrompt }: PictureTexts, isGuided: boolean): Promise<Conditioning> {
    const texts = isGuided ? [negativePrompt ?? '', prompt] : [prompt];
    const encoded: EncodedText[] = [];
    for (const text of texts) encoded.push(await this.encodeText(text));
    return { chunks: 1, lengths: encoded.map(({ length }) => length), rows: encoded.map(({ row }) => row) };
  }

  async encodeNothing(): Promise<Conditioning> {
    const ids = this.files.tokensOf('').slice(0, trialTokens);
    const states = await tried(this.files.file, () => this.run(ids, ids.length));
    if (!areFinite(states)) throw new ModelFolderError(this.files.file, notFinite, cures.otherWeights);
    const { row, length } = this.files.use.conditioningOf(states, ids.length);
    return { chunks: 1, lengths: [length], rows: [row] };
  }

  release(): Promise<void> {
    return this.session.release();
  }

  private async encodeText(text: string): Promise<EncodedText> {
    const known = this.cache.get(text);
    if (known) return known;
    const { maxTokens, encodedTokens, conditioningOf } = this.files.use;
    const ids = this.files.tokensOf(text);
    if (ids.length > maxTokens)
      throw new RequestError(`The prompt takes ${ids.length} tokens of this model; it reads at most ${maxTokens}.`);
    const tokens = encodedTokens(ids.length);
    const encoded = conditioningOf(await this.run(ids, tokens), tokens);
    this.cache.set(text, encoded);
    return encoded;
  }

  /** The states of so many tokens, of which those behind the ids are padding. */
  private async run(ids: readonly number[], tokens: number): Promise<Float32Array> {
    const all = BigInt64Array.from(this.files.tokenizer.padded(ids, tokens), BigInt);
    const mask = Int32Array.from({ length: tokens }, (_, i) => Number(i < ids.length));
    const shape = [1, tokens];
    const feeds = { input_ids: int64(all, shape), attention_mask: int32(mask, shape) };
    return floatsOf((await this.session.run(feeds)).hidden_states);
  }
}

/** [tokens, width] of states. */
export const statesOf = (states: Float32Array, tokens: number): Tensors => ({
  encoder_hidden_states: float32(states, [tokens, states.length / tokens]),
});
