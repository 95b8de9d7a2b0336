import { RequestError } from '../errors';
import { AppliedAdapters } from '../adapters/applied-adapters';
import { ClipConditionerFiles, type ClipEncoderFiles, conditioningOf } from '../conditioners/clip-conditioner';
import type { ConditionerFiles } from '../conditioners/conditioner';
import type { EncodedRow } from '../conditioners/clip-text-encoder';
import { chunkPrompt, type PromptChunk } from '../conditioners/prompt-chunks';
import type { LoadOptions } from '../sessions/model-session';
import type { Tensors } from '../sessions/tensor';
import { takesTokens, type TrainingSettings } from './settings';

/** The denoiser's inputs for a text, without the axis of rows; what is no float32 there is widened to it here. */
export interface EncodedText {
  /** Of a language model, whose states take many megabytes: a checkpoint has it in their place. */
  prompt?: string;
  inputs: Readonly<Record<string, { dims: readonly number[]; values: Float32Array }>>;
}

export interface TokenizedText {
  /** Token ids for each text encoder: whole numbers, which float32 holds exactly. A checkpoint has no other arrays. */
  ids: readonly Float32Array[];
  /** 0 where zeros stand for no text, else 1. */
  scale: number;
}

/** A text as the denoiser takes it, or as the text encoders do where they are a part of what is trained. */
export type TrainingText = EncodedText | TokenizedText;

/** Texts of a training, in their order; the last one stands for no caption. */
export function readTexts(
  conditioner: ConditionerFiles,
  texts: readonly string[],
  settings: TrainingSettings,
  load: LoadOptions,
): Promise<TrainingText[]> {
  return conditioner instanceof ClipConditionerFiles
    ? readClipTexts(conditioner, texts, settings, load)
    : encodeEach(conditioner, texts, load);
}

/** @throws RequestError if a text is too long */
async function encodeEach(
  conditioner: ConditionerFiles,
  texts: readonly string[],
  load: LoadOptions,
): Promise<EncodedText[]> {
  for (const text of texts) {
    const { problem } = conditioner.lengthOf(text, false);
    if (problem !== undefined) throw new RequestError(`A caption ${problem}: ${text.slice(0, 80)}`);
  }
  const opened = await conditioner.open(load);
  const encoded = new Map<string, EncodedText>();
  try {
    for (const prompt of new Set(texts)) {
      load.signal?.throwIfAborted();
      const { rows } = await opened.encode({ prompt }, false, new AppliedAdapters([]));
      encoded.set(prompt, { prompt, ...encodedText(rows[0]) });
    }
  } finally {
    await opened.release();
  }
  return texts.map((text) => encoded.get(text)!);
}

/** Encodes what a checkpoint only names. */
export async function encodeNamed(
  conditioner: ConditionerFiles,
  texts: readonly TrainingText[],
  load: LoadOptions,
): Promise<void> {
  const named = texts.flatMap((text) => ('prompt' in text && text.prompt !== undefined ? [text] : []));
  if (named.length === 0) return;
  const encoded = await encodeEach(
    conditioner,
    named.map(({ prompt }) => prompt!),
    load,
  );
  for (const [i, text] of named.entries()) Object.assign(text, encoded[i]);
}

const encodedText = (row: Tensors): EncodedText => ({
  inputs: Object.fromEntries(
    Object.entries(row).map(([name, { data, dims }]) => [
      name,
      { dims, values: Float32Array.from(data as Float32Array) },
    ]),
  ),
});

async function readClipTexts(
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
): Promise<EncodedText[]> {
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
    return encodedText(conditioningOf(rows, rowTokens));
  });
}

function silent(text: TrainingText): TrainingText {
  if ('ids' in text) return { ...text, scale: 0 };
  const inputs = Object.entries(text.inputs).map(([name, { dims, values }]) => [
    name,
    { dims, values: new Float32Array(values.length) },
  ]);
  return { inputs: Object.fromEntries(inputs) as EncodedText['inputs'] };
}
