import { RequestError } from '../errors';
import type { ModelFolder } from '../families/model-folder';
import type { ClipTextEncoder, EncodedRow } from '../text-encoder/clip-text-encoder';
import type { ClipTokenizer } from '../tokenizer/clip-tokenizer';
import { chunkPrompt, maxChunks, padChunks } from '../tokenizer/prompt-chunks';
import type { AppliedAdapters } from './applied-adapters';
import type { TextToImageRequest } from './text-to-image-request';
import type { PromptEmbedding } from './trajectory';

/** A text encoder, and the tokenizer of its texts. */
export interface LoadedTextEncoder {
  part: 'text_encoder' | 'text_encoder_2';
  encoder: ClipTextEncoder;
  tokens: ClipTokenizer;
  /** The first id after the vocabulary's. */
  vocabulary: number;
}

/** The texts of requests, encoded by all text encoders of a model. Source: `encode_prompt` of diffusers' pipelines. */
export class PromptEncoder {
  constructor(
    private readonly encoders: readonly LoadedTextEncoder[],
    private readonly folder: Pick<ModelFolder, 'hasZerosForNoText'>,
  ) {}

  /** @param isGuided whether the negative prompt is encoded too, as the first row */
  async encode(request: TextToImageRequest, isGuided: boolean, adapters: AppliedAdapters): Promise<PromptEmbedding> {
    const { prompt, negativePrompt, promptWeighting } = request;
    const isZero = isGuided && this.folder.hasZerosForNoText && (negativePrompt ?? null) === null;
    const texts = isGuided && !isZero ? [negativePrompt ?? '', prompt] : [prompt];
    const tokenizers = this.encoders.map(({ tokens, vocabulary }) => adapters.tokenizer(tokens, vocabulary));
    const chunked = tokenizers.map((own) => texts.map((text) => chunkPrompt(text, own, promptWeighting)));
    const chunks = Math.max(...chunked.flat().map(({ length }) => length));
    if (chunks > maxChunks)
      throw new RequestError(
        `The prompt takes ${chunks} chunks of ${tokenizers[0].maxLength - 2} tokens; at most ${maxChunks} can be drawn.`,
      );
    const encoded: EncodedRow[][][] = [];
    for (const [i, { part, encoder }] of this.encoders.entries()) {
      const all = chunked[i].flatMap((parts) => padChunks(parts, chunks, tokenizers[i]));
      const rows = await encoder.encode(all, adapters.ofTextEncoder(part, encoder.width));
      encoded.push(texts.map((_, text) => rows.slice(text * chunks, (text + 1) * chunks)));
    }
    const tokens = chunks * this.encoders[0].tokens.maxLength;
    const rows = texts.map((_, text) =>
      sideBySide(
        encoded.map((ofTexts) => ofTexts[text]),
        tokens,
      ),
    );
    const pooled = encoded.flatMap((ofTexts) => {
      const own = ofTexts.flatMap(([first]) => first.pooled ?? []);
      return own.length > 0 ? [own] : [];
    })[0] as Float32Array[] | undefined;
    const withZeros = (values: Float32Array[]): Float32Array[] =>
      isZero ? [new Float32Array(values[0].length), ...values] : values;
    return { chunks, tokens, rows: withZeros(rows), ...(pooled && { pooled: withZeros(pooled) }) };
  }
}

/** [tokens, all widths] of one text: its chunks one after the other, and of each token what every encoder gives. */
export function sideBySide(encoders: readonly (readonly EncodedRow[])[], tokens: number): Float32Array {
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
