import type { SafetensorsInfo } from '../safetensors/safetensors-header';
import { type NamedTensor, readValues } from '../weights/named-tensor';
import { quote } from '../safetensors/quote';
import type { AdapterWord, LearnedWord } from './adapter';
import type { PartName, PartTensors } from '../weights/original-names';
import { isAdapterKey } from './keys';
import { malformed, misfit, shapeText, unsupported } from './weights-error';

/** Names of an embedding's tensors that are no words, and of which text encoder they are where they say it. */
const vectorNames: Readonly<Record<string, PartName | undefined>> = {
  emb_params: undefined,
  emp_params: undefined,
  'string_to_param.*': undefined,
  '*': undefined,
  clip_l: 'text_encoder',
  clip_g: 'text_encoder_2',
  text_encoders_0: 'text_encoder',
  text_encoders_1: 'text_encoder_2',
};

const isVectorName = (key: string): boolean => Object.hasOwn(vectorNames, key);

/** Embeddings beside the layers of a LoRA: `bundle_emb.<word>.clip_l`. */
const bundled = /^bundle_emb\.([^.]+)\.(.+)$/;

export const isBundledWord = (key: string): boolean => bundled.test(key);

/**
 * Whether a file's tensors are embeddings and nothing else: under the names of a1111 or of a tool for XL, or, as in
 * diffusers, one or several tensors named by their words.
 */
export function isTextualInversion(tensors: ReadonlyMap<string, SafetensorsInfo>): boolean {
  const areRows = [...tensors.values()].every(({ shape }) => shape.length === 1 || shape.length === 2);
  if (!areRows || tensors.size === 0) return false;
  const keys = [...tensors.keys()];
  const isWord = (key: string): boolean =>
    !/\.(?:weight|bias|alpha)$/.test(key) && (keys.length === 1 || !key.includes('.')) && !isAdapterKey(key);
  return keys.every(isVectorName) || keys.every(isWord);
}

/** Words that a file may bring along: each takes a place in the texts of every picture that is drawn with it. */
const maxWords = 32;

/** The embeddings of a file that has nothing else. @throws WeightsError if a textual inversion has two words */
export function readWords(keys: readonly string[], named: (key: string) => NamedTensor): AdapterWord[] {
  const words = new Map<string | undefined, AdapterWord>();
  for (const key of keys) {
    const [, bundle, name = key] = bundled.exec(key) ?? [];
    if (name.endsWith('_out') && isVectorName(name.slice(0, -'_out'.length)))
      throw unsupported(
        `The key ${quote(key)} is an embedding of a text encoder's output; those of words are accepted.`,
      );
    const word = bundle ?? (isVectorName(key) ? undefined : key);
    const found = words.get(word) ?? { word, vectors: [] };
    found.vectors.push({ tensor: named(key), part: vectorNames[name] });
    words.set(word, found);
  }
  const own = keys.filter((key) => !isBundledWord(key));
  if (own.length > 1 && words.size > 1)
    throw unsupported(
      `The file holds embeddings of several words, ${own.slice(0, 3).map(quote).join(', ')}; one of a single word is accepted.`,
    );
  if (words.size > maxWords)
    throw unsupported(`The file holds embeddings of ${words.size} words; at most ${maxWords} are accepted.`);
  return [...words.values()];
}

/** @throws WeightsError if a text encoder of the model has embeddings of another width, or none are there for it */
export function fitWord({ word, vectors }: AdapterWord, model: PartTensors): LearnedWord {
  const encoders = (['text_encoder', 'text_encoder_2'] as const).filter((part) => model.has(part));
  const fitted = new Map<PartName, () => Promise<Float32Array>>();
  const counts = new Set<number>();
  for (const { tensor, part = 'text_encoder' } of vectors) {
    const { name, shape } = tensor;
    const table = model.get(part)?.get('text_model.embeddings.token_embedding.weight');
    if (!table && model.has(part))
      throw misfit(`The key ${quote(name)} is an embedding of a word; the base model's ${part} takes none.`);
    if (!table || fitted.has(part))
      throw misfit(`The embedding ${quote(name)} is for a model with several text encoders.`);
    const [count, width] = shape.length === 1 ? [1, shape[0]] : shape;
    if (table.shape[1] !== width)
      throw misfit(
        `The embedding ${quote(name)} has the shape ${shapeText([count, width])}; the base model's token embeddings are ${shapeText(table.shape)}.`,
      );
    // Begin and end of the text take one position each.
    const room = (model.get(part)!.get('text_model.embeddings.position_embedding.weight')?.shape[0] ?? 77) - 2;
    if (count > room)
      throw misfit(`The embedding has ${count} vectors; the base model's text window has room for ${room}.`);
    counts.add(count);
    fitted.set(part, () => readValues(tensor));
  }
  const missing = encoders.find((part) => !fitted.has(part));
  if (missing !== undefined)
    throw misfit(
      `The embedding has no vectors for the base model's ${missing}: it is for a model with one text encoder.`,
    );
  if (counts.size > 1) throw malformed('The embeddings of the text encoders differ in their number of vectors.');
  return { ...(word !== undefined && { word }), count: [...counts][0], vectors: fitted };
}
