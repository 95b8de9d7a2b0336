import { LRUCache } from 'lru-cache';
import { qwen3Model, type Qwen3Config } from '../architectures/qwen3-model';
import { cures, ModelFolderError, RequestError } from '../errors';
import type { BuiltGraph, ModuleOptions } from '../graph/module';
import type { GraphSession, LoadOptions } from '../sessions/model-session';
import { openPart, type PartFiles } from '../sessions/part-graph';
import { float32, floatsOf, int32, int64, type Tensors } from '../sessions/tensor';
import { tried } from '../sessions/tried';
import { areFinite, notFinite } from '../tensor/planes';
import { chatPrompt, type QwenTokenizer } from '../tokenizer/qwen-tokenizer';
import type { NamedTensors } from '../weights/named-tensor';
import type { Conditioner, ConditionerFiles, Conditioning, PictureTexts, TextLength } from './conditioner';

/** How a family reads texts with Qwen3. */
export interface QwenUse {
  /** Whether its chat template leaves room for thoughts. */
  enableThinking: boolean;
  /** Layers of which the incoming states are given side by side. */
  layers: readonly number[];
  /** Tokens that are encoded of a text with so many; the others are padding. */
  encodedTokens: (tokens: number) => number;
  /** The denoiser's inputs for the states of so many encoded tokens. */
  conditioningOf: (states: Float32Array, encoded: number) => EncodedText;
}

/** The inputs of the denoiser for a text, and how many tokens they have. */
export interface EncodedText {
  row: Tensors;
  length: number;
}

/** Tokens of a text, its template included, that the models' pipelines read. */
export const maxTokens = 512;

/** Bytes of encoded texts that are kept for requests with the same text: of FLUX.2 one takes 16 MB. */
const keptBytes = 256 * 2 ** 20;
/** Values of a token that are in memory at once, as a multiple of the widths of a layer. */
const liveValues = 3;
/** The text that the encoder is tried with; with all of the padding it would take as long as a picture's. */
const trialTokens = 8;

/** Qwen3 before it is loaded, and its tokenizer. */
export class QwenConditionerFiles implements ConditionerFiles, PartFiles {
  readonly part = 'text_encoder';
  readonly encoders = [this];

  constructor(
    readonly tensors: NamedTensors,
    readonly file: string,
    private readonly config: Qwen3Config,
    readonly tokenizer: QwenTokenizer,
    readonly use: QwenUse,
  ) {}

  /** A token takes at least one byte. */
  get certainBytes(): number {
    return maxTokens - this.tokensOf('').length;
  }

  /** Ids of a text in its template. */
  tokensOf(text: string): number[] {
    return this.tokenizer.tokenize(chatPrompt(text, this.use));
  }

  lengthOf(text: string): TextLength {
    const { length } = this.tokensOf(text);
    if (length <= maxTokens) return { chunks: 1 };
    return { chunks: 1, problem: `takes ${length} tokens of this model; it reads at most ${maxTokens}` };
  }

  callBytes(): number {
    const shapeOf = (name: string): number[] => [...(this.weight(name)?.shape ?? [0, 0])];
    const [inner, width] = shapeOf('layers.0.mlp.gate_proj.weight');
    const [heads] = shapeOf('layers.0.self_attn.q_proj.weight');
    const kept = this.use.layers.length * width;
    return maxTokens * (liveValues * (2 * inner + 3 * heads + 2 * width) + 2 * kept) * Float32Array.BYTES_PER_ELEMENT;
  }

  build = (options: ModuleOptions): BuiltGraph => qwen3Model(options, this.config, this.use.layers);

  async open(options: LoadOptions): Promise<QwenConditioner> {
    const vocabulary = this.weight('embed_tokens.weight')?.shape[0] ?? 0;
    if (this.tokenizer.vocabularySize > vocabulary)
      throw new ModelFolderError(
        this.file,
        `knows ${vocabulary} tokens, and its tokenizer has ${this.tokenizer.vocabularySize}`,
        cures.oneModel,
      );
    return new QwenConditioner(
      this,
      await openPart(this, this.build, options, { onCuda: 'bfloat16', isAdapted: false }),
    );
  }

  private weight(name: string) {
    return this.tensors.get(`model.${name}`) ?? this.tensors.get(name);
  }
}

/** The texts of requests, encoded by Qwen3, each by itself: so a text has the same bits whatever stands beside it. */
export class QwenConditioner implements Conditioner {
  private readonly cache = new LRUCache<string, EncodedText>({
    maxSize: keptBytes,
    sizeCalculation: ({ row }) =>
      Object.values(row).reduce((sum, { data }) => sum + (data as Uint8Array).byteLength, 1),
  });

  constructor(
    private readonly files: QwenConditionerFiles,
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
    const ids = this.files.tokensOf(text);
    if (ids.length > maxTokens)
      throw new RequestError(`The prompt takes ${ids.length} tokens of this model; it reads at most ${maxTokens}.`);
    const { encodedTokens, conditioningOf } = this.files.use;
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
