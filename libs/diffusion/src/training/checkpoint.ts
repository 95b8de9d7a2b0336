import { readFloats } from '../safetensors/safetensors';
import { readSafetensorsHeader } from '../safetensors/safetensors-header';
import { type FloatTensor, writeSafetensors } from '../safetensors/write-safetensors';
import { BufferSource } from '../tensor/byte-source';
import type { LatentShape } from '../tensor/planes';
import type { EncodedText, Example, Examples } from './examples';
import type { TrainingSettings } from './settings';

/** Where a training stands. */
export interface TrainingState {
  settings: TrainingSettings;
  /** Steps done. */
  step: number;
  /** Factor of the rate: less than 1 once a training has begun again. */
  rateFactor: number;
  /** Of the picture kept back. */
  lossAtStart: number;
  /** By name: factors, then their first and second moments. */
  values: ReadonlyMap<string, Float32Array>;
  examples: Examples;
}

const lists = ['shown', 'prior', 'keptPrior'] as const;

/** A training in one file: texts that several pictures share stand there once. */
export function writeCheckpoint({ values, examples, ...facts }: TrainingState): Buffer {
  const tensors = new Map<string, FloatTensor>();
  for (const [name, own] of values) tensors.set(name, { shape: [own.length], values: own });
  const texts: EncodedText[] = [];
  const textIndex = (text: EncodedText): number => {
    const known = texts.indexOf(text);
    return known >= 0 ? known : texts.push(text) - 1;
  };
  const all = [...lists.flatMap((list) => examples[list]), ...(examples.keptBack ? [examples.keptBack] : [])];
  const pictures = all.map(({ shape, text }) => ({ shape, text: textIndex(text) }));
  const noText = textIndex(examples.noText);
  for (const [i, { shape, mean, deviation }] of all.entries()) {
    tensors.set(`picture.${i}.mean`, { shape, values: mean });
    if (deviation) tensors.set(`picture.${i}.deviation`, { shape, values: deviation });
  }
  for (const [i, { states, pooled }] of texts.entries()) {
    tensors.set(`text.${i}.states`, { shape: [states.length], values: states });
    if (pooled) tensors.set(`text.${i}.pooled`, { shape: [pooled.length], values: pooled });
  }
  const counts = lists.map((list) => examples[list].length);
  const training = JSON.stringify({ ...facts, pictures, counts, noText, scale: examples.scale });
  return writeSafetensors(tensors, { training });
}

/** The facts of a checkpoint beside its tensors. */
interface CheckpointFacts extends Pick<TrainingState, 'settings' | 'step' | 'rateFactor' | 'lossAtStart'> {
  pictures: { shape: LatentShape; text: number }[];
  counts: number[];
  noText: number;
  scale: number;
}

function open(bytes: Uint8Array) {
  const source = new BufferSource(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  const { tensors, metadata } = readSafetensorsHeader(source);
  return { source, tensors, facts: JSON.parse(metadata.get('training')!) as CheckpointFacts };
}

/** The settings that a checkpoint was trained with. @throws SafetensorsError if it is none */
export function settingsOfCheckpoint(bytes: Uint8Array): TrainingSettings {
  return open(bytes).facts.settings;
}

/** @throws SafetensorsError if it is none */
export function readCheckpoint(bytes: Uint8Array): TrainingState {
  const { source, tensors, facts: told } = open(bytes);
  const { pictures, counts, noText, scale, ...facts } = told;
  const read = (name: string): Float32Array | undefined => {
    const info = tensors.get(name);
    return info && readFloats(source, info);
  };
  const texts = new Map<number, EncodedText>();
  const text = (i: number): EncodedText => {
    const pooled = read(`text.${i}.pooled`);
    if (!texts.has(i)) texts.set(i, { states: read(`text.${i}.states`)!, ...(pooled && { pooled }) });
    return texts.get(i)!;
  };
  const all = pictures.map((picture, i): Example => {
    const deviation = read(`picture.${i}.deviation`);
    return { ...picture, mean: read(`picture.${i}.mean`)!, ...(deviation && { deviation }), text: text(picture.text) };
  });
  const [shown, prior, keptPrior] = counts.map((count) => all.splice(0, count));
  const names = [...tensors.keys()].filter((name) => !/^(?:picture|text)\./.test(name));
  const values = new Map(names.map((name) => [name, read(name)!]));
  return { ...facts, values, examples: { shown, prior, keptPrior, keptBack: all[0], noText: text(noText), scale } };
}
