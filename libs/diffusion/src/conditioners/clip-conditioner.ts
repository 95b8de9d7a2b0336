import { AppliedAdapters } from '../adapters/applied-adapters';
import { clipTextModel, type ClipTextConfig } from '../architectures/clip-text-model';
import { cures, ModelFolderError, RequestError } from '../errors';
import type { BuiltGraph, ModuleOptions } from '../graph/module';
import type { GraphSession, LoadOptions } from '../sessions/model-session';
import { openPart, type PartFiles } from '../sessions/part-graph';
import { float32, floatsOf, type Tensors } from '../sessions/tensor';
import { tried } from '../sessions/tried';
import { areFinite, notFinite } from '../tensor/planes';
import type { ClipTokenizer, TaughtWord } from '../tokenizer/clip-tokenizer';
import type { NamedTensor, NamedTensors } from '../weights/named-tensor';
import { ClipTextEncoder, type EncodedRow } from './clip-text-encoder';
import type { Conditioner, ConditionerFiles, Conditioning, PictureTexts, TextLength } from './conditioner';
import { chunkPrompt, lengthInChunks, maxChunks, padChunks } from './prompt-chunks';

/** How a family uses a text encoder. */
export interface ClipEncoderUse {
  part: 'text_encoder' | 'text_encoder_2';
  /** Last layers that are left out. */
  skip: number;
  /** Whether its states are normalised as the last one is. */
  isNormed: boolean;
  /** Whether the state of the text's end is taken too. */
  isPooled: boolean;
}

/** Values per token that a text encoder has in memory at once, as a multiple of the sum of its two widths. */
const liveValues = 3;

/** A text encoder of a model before it is loaded, and the tokenizer of its texts. */
export class ClipEncoderFiles implements PartFiles {
  readonly part: ClipEncoderUse['part'];
  /** The embeddings of its vocabulary: [tokens, width]. */
  readonly table: NamedTensor;

  constructor(
    readonly use: ClipEncoderUse,
    readonly tensors: NamedTensors,
    readonly file: string,
    private readonly config: ClipTextConfig,
    readonly tokens: ClipTokenizer,
  ) {
    this.part = use.part;
    this.table = tensors.get('text_model.embeddings.token_embedding.weight')!;
  }

  /** The first id after the vocabulary's. */
  get vocabulary(): number {
    return this.table.shape[0];
  }

  /** Values of a token in memory, inside a layer and between two. */
  get liveWidth(): number {
    const [, hidden] = this.table?.shape ?? [0, 768];
    return hidden + (this.tensors.get('text_model.encoder.layers.0.mlp.fc1.weight')?.shape[0] ?? 4 * hidden);
  }

  build = (options: ModuleOptions): BuiltGraph => {
    const { skip, isNormed, isPooled } = this.use;
    return clipTextModel(options, this.config, { skips: [skip], isNormed, isPooled });
  };
  readonly graphs = [this.build];

  async open(options: LoadOptions): Promise<ClipTextEncoder> {
    return new ClipTextEncoder(await openPart(this, this.build, options, { onCuda: 'float16', isAdapted: true }));
  }
}

/** One or two of CLIP's text encoders before they are loaded. Long texts are read in chunks, as desktop tools do. */
export class ClipConditionerFiles implements ConditionerFiles {
  readonly takesClipSkip = true;
  /** @param hasZerosForNoText whether a negative prompt that is not given is zeros, and not the empty text */
  constructor(
    readonly encoders: readonly ClipEncoderFiles[],
    readonly hasZerosForNoText: boolean,
  ) {}

  /** Begin and end of each chunk take a place each. */
  get chunkTokens(): number {
    return this.rowTokens - 2;
  }

  /** Tokens of an encoded row, begin and end included. */
  get rowTokens(): number {
    return this.encoders[0].tokens.maxLength;
  }

  /** A token takes at least one byte, unless it is one of the words that the tokenizer has beside CLIP's. */
  get certainBytes(): number {
    return this.encoders[0].tokens.hasAddedWords ? 0 : this.chunkTokens;
  }

  lengthOf(text: string, weighting: boolean, words: readonly TaughtWord[] = []): TextLength {
    const [{ tokens }] = this.encoders;
    const length = lengthInChunks(text, words.length > 0 ? tokens.withWords(words) : tokens, weighting);
    const { chunks } = length;
    if (chunks <= maxChunks) return length;
    return { ...length, problem: `would take ${chunks} chunks of tokens; at most ${maxChunks} can be drawn` };
  }

  callBytes({ prompt, negativePrompt, promptWeighting = false }: PictureTexts, isGuided: boolean): number {
    const encoded = isGuided ? [negativePrompt ?? '', prompt] : [prompt];
    const chunks = encoded.map((text) => this.lengthOf(text, promptWeighting).chunks);
    const rows = encoded.length * Math.min(maxChunks, Math.max(...chunks));
    const width = this.encoders.reduce((sum, { liveWidth }) => sum + liveWidth, 0);
    return rows * liveValues * this.rowTokens * width * Float32Array.BYTES_PER_ELEMENT;
  }

  async open(options: LoadOptions): Promise<ClipConditioner> {
    const opened: ClipTextEncoder[] = [];
    try {
      for (const encoder of this.encoders) opened.push(await openEncoder(encoder, options));
      return new ClipConditioner(this, opened);
    } catch (error) {
      await Promise.all(opened.map((encoder) => encoder.release()));
      throw error;
    }
  }
}

/** Opens a text encoder and tries it with no text, which it then knows. */
async function openEncoder(files: ClipEncoderFiles, options: LoadOptions): Promise<ClipTextEncoder> {
  const { file, tokens } = files;
  const encoder = await files.open(options);
  try {
    const { vocabulary } = files;
    if (tokens.vocabularySize > vocabulary)
      throw new ModelFolderError(
        file,
        `knows ${vocabulary} tokens, and its tokenizer has ${tokens.vocabularySize}`,
        cures.oneModel,
      );
    const [row] = await tried(file, () => encoder.encode([{ inputIds: tokens.frame([]) }]));
    if (!areFinite(row.states)) throw new ModelFolderError(file, notFinite, cures.otherWeights);
    return encoder;
  } catch (error) {
    await encoder.release();
    throw error;
  }
}

/** The texts of requests, encoded by all text encoders of a model. Source: `encode_prompt` of diffusers' pipelines. */
export class ClipConditioner implements Conditioner {
  constructor(
    private readonly files: ClipConditionerFiles,
    private readonly encoders: readonly ClipTextEncoder[],
  ) {}

  get spent(): GraphSession['spent'] {
    const all = this.encoders.map(({ spent }) => spent);
    const sum = (of: 'runs' | 'runMs'): number => all.reduce((total, spent) => total + spent[of], 0);
    return { runs: sum('runs'), runMs: sum('runMs') };
  }

  async encode(
    { prompt, negativePrompt, promptWeighting }: PictureTexts,
    isGuided: boolean,
    adapters: AppliedAdapters,
  ): Promise<Conditioning> {
    const { encoders: files, hasZerosForNoText, rowTokens, chunkTokens } = this.files;
    const isZero = isGuided && hasZerosForNoText && (negativePrompt ?? null) === null;
    const texts = isGuided && !isZero ? [negativePrompt ?? '', prompt] : [prompt];
    const tokenizers = files.map(({ tokens, vocabulary }) => withWords(tokens, adapters, vocabulary));
    const chunked = tokenizers.map((own) => texts.map((text) => chunkPrompt(text, own, promptWeighting)));
    const chunks = Math.max(...chunked.flat().map(({ length }) => length));
    if (chunks > maxChunks)
      throw new RequestError(
        `The prompt takes ${chunks} chunks of ${chunkTokens} tokens; at most ${maxChunks} can be drawn.`,
      );
    const encoded: EncodedRow[][][] = [];
    for (const [i, { part }] of files.entries()) {
      const encoder = this.encoders[i];
      const all = chunked[i].flatMap((parts) => padChunks(parts, chunks, tokenizers[i]));
      const rows = await encoder.encode(all, adapters.ofTextEncoder(part, encoder.width));
      encoded.push(texts.map((_, text) => rows.slice(text * chunks, (text + 1) * chunks)));
    }
    const tokens = chunks * rowTokens;
    const rows = texts.map((_, text) =>
      conditioningOf(
        encoded.map((ofTexts) => ofTexts[text]),
        tokens,
      ),
    );
    const all = isZero ? [zerosOf(rows[0]), ...rows] : rows;
    return { chunks, lengths: all.map(() => tokens), rows: all };
  }

  encodeNothing(): Promise<Conditioning> {
    return this.encode({ prompt: '' }, false, new AppliedAdapters([]));
  }

  async release(): Promise<void> {
    await Promise.all(this.encoders.map((encoder) => encoder.release()));
  }
}

/** The tokenizer with the words of adapters. @param first the id of the first vector */
function withWords(tokens: ClipTokenizer, { words }: AppliedAdapters, first: number): ClipTokenizer {
  return words.length > 0 ? tokens.withWords(words, first) : tokens;
}

/**
 * Inputs of the denoiser for one text: its chunks one after the other, and of each token what every encoder gives; and
 * the pooled text of the encoder that has one.
 */
export function conditioningOf(encoders: readonly (readonly EncodedRow[])[], tokens: number): Tensors {
  const states = sideBySide(encoders, tokens);
  const pooled = encoders.flatMap(([first]) => first.pooled ?? [])[0] as Float32Array | undefined;
  return {
    encoder_hidden_states: float32(states, [tokens, states.length / tokens]),
    ...(pooled && { text_embeds: float32(pooled) }),
  };
}

/** Arrays of the same shapes, all zeros. */
export const zerosOf = (row: Tensors): Tensors =>
  Object.fromEntries(
    Object.entries(row).map(([name, tensor]) => [
      name,
      float32(new Float32Array(floatsOf(tensor).length), tensor.dims),
    ]),
  );

/** [tokens, all widths] */
function sideBySide(encoders: readonly (readonly EncodedRow[])[], tokens: number): Float32Array {
  const widths = encoders.map((rows) => (rows.length * rows[0].states.length) / tokens);
  const width = widths.reduce((sum, each) => sum + each, 0);
  const whole = new Float32Array(tokens * width);
  let first = 0;
  for (const [i, rows] of encoders.entries()) {
    let token = 0;
    for (const { states } of rows)
      for (let at = 0; at < states.length; at += widths[i])
        whole.set(states.subarray(at, at + widths[i]), token++ * width + first);
    first += widths[i];
  }
  return whole;
}
