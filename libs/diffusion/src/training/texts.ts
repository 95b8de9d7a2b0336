import { RequestError } from '../errors';
import { type ClipConditionerFiles, type ClipEncoderFiles, conditioningOf } from '../conditioners/clip-conditioner';
import type { EncodedRow } from '../conditioners/clip-text-encoder';
import { chunkPrompt, type PromptChunk } from '../conditioners/prompt-chunks';
import type { LoadOptions } from '../sessions/model-session';
import { floatsOf } from '../sessions/tensor';
import { takesTokens, type TrainingSettings } from './settings';

export interface TextStates {
  /** [tokens, width] */
  states: Float32Array;
  /** Only of XL. */
  pooled?: Float32Array;
}

export interface TokenizedText {
  /** Token ids for each text encoder: whole numbers, which float32 holds exactly. A checkpoint has no other arrays. */
  ids: readonly Float32Array[];
  /** 0 where zeros stand for no text, else 1. */
  scale: number;
}

/** A text as the denoiser takes it, or as the text encoders do where they are a part of what is trained. */
export type TrainingText = TextStates | TokenizedText;

/** Texts of a training, in their order; the last one stands for no caption. */
export async function readTexts(
  conditioner: ClipConditionerFiles,
  texts: readonly string[],
  settings: TrainingSettings,
  load: LoadOptions,
): Promise<TrainingText[]> {
  const chunks = conditioner.encoders.map((encoder) => chunksOf(texts, encoder, settings));
  const found: TrainingText[] = takesTokens(settings)
    ? texts.map((_, i) => ({ ids: chunks.map((own) => Float32Array.from(own[i].inputIds)), scale: 1 }))
    : await encode(conditioner, chunks, load);
  return conditioner.hasZerosForNoText ? [...found.slice(0, -1), silent(found.at(-1)!)] : found;
}

/**
 * The texts as the tokens of an encoder. A word that is learnt has the ids after the vocabulary's, and stands in front
 * of a caption that lacks it, which would teach nothing.
 * @throws RequestError if a text is longer than the text window
 */
function chunksOf(
  texts: readonly string[],
  { tokens, vocabulary }: ClipEncoderFiles,
  { kind, token = '', vectors = 1 }: TrainingSettings,
): PromptChunk[] {
  const isWord = kind === 'textual_inversion';
  const tokenizer = isWord ? tokens.withWords([{ word: token, vectors }], vocabulary) : tokens;
  return texts.map((text) => {
    const hasWord = !isWord || tokenizer.tokenize(text).some((id) => id >= vocabulary);
    const [chunk, ...more] = chunkPrompt(hasWord ? text : `${token}, ${text}`, tokenizer);
    if (more.length === 0) return chunk;
    throw new RequestError(`A caption has more than ${tokens.maxLength - 2} tokens: ${text.slice(0, 80)}`);
  });
}

/** Each text by all text encoders, one of which is loaded at a time. */
async function encode(
  { encoders, rowTokens }: ClipConditionerFiles,
  chunks: PromptChunk[][],
  load: LoadOptions,
): Promise<TextStates[]> {
  const encoded: EncodedRow[][] = [];
  for (const [i, own] of chunks.entries()) {
    const encoder = await encoders[i].open(load);
    try {
      encoded.push(await encoder.encode(own));
    } finally {
      await encoder.release();
    }
  }
  return chunks[0].map((_, i) => {
    const rows = encoded.map((ofEncoder) => [ofEncoder[i]]);
    const { encoder_hidden_states: states, text_embeds: pooled } = conditioningOf(rows, rowTokens);
    return { states: floatsOf(states), ...(pooled && { pooled: floatsOf(pooled) }) };
  });
}

function silent(text: TrainingText): TrainingText {
  if ('ids' in text) return { ...text, scale: 0 };
  const { states, pooled } = text;
  const zeros = ({ length }: Float32Array): Float32Array => new Float32Array(length);
  return { states: zeros(states), ...(pooled && { pooled: zeros(pooled) }) };
}
