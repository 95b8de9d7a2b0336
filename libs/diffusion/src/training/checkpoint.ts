import { readFloats } from '../safetensors/safetensors';
import { readSafetensorsHeader } from '../safetensors/safetensors-header';
import { type FloatTensor, writeSafetensors } from '../safetensors/write-safetensors';
import { BufferSource } from '../tensor/byte-source';
import type { Examples } from './examples';
import type { TrainingSettings } from './settings';

/** Where a training stands. */
export interface TrainerState {
  settings: TrainingSettings;
  step: number;
  /** Factor of the rate: less than 1 once a training has begun again. */
  rateFactor: number;
  /** Of the picture kept back. */
  lossAtStart: number;
  /** By name: factors, then their first and second moments. */
  values: ReadonlyMap<string, Float32Array>;
  examples: Examples;
}

/** A training in one file: arrays that several pictures share stand there once. */
export function writeCheckpoint({ values, examples, ...facts }: TrainerState): Buffer {
  const tensors = new Map<string, FloatTensor>();
  for (const [name, own] of values) tensors.set(name, { shape: [own.length], values: own });
  const places = new Map<Float32Array, number>();
  const toldExamples = JSON.stringify(examples, (_, value: unknown) => {
    const { prompt } = (value ?? {}) as { prompt?: string };
    if (prompt !== undefined) return { prompt };
    if (!(value instanceof Float32Array)) return value;
    if (!places.has(value)) {
      tensors.set(`example.${places.size}`, { shape: [value.length], values: value });
      places.set(value, places.size);
    }
    return { array: places.get(value) };
  });
  return writeSafetensors(tensors, { training: JSON.stringify(facts), examples: toldExamples });
}

type CheckpointFacts = Pick<TrainerState, 'settings' | 'step' | 'rateFactor' | 'lossAtStart'>;

function open(bytes: Uint8Array) {
  const source = new BufferSource(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  const { tensors, metadata } = readSafetensorsHeader(source);
  return { source, tensors, metadata, facts: JSON.parse(metadata.get('training')!) as CheckpointFacts };
}

/** The settings that a checkpoint was trained with. @throws SafetensorsError if it is none */
export function settingsOfCheckpoint(bytes: Uint8Array): TrainingSettings {
  return open(bytes).facts.settings;
}

/** @throws SafetensorsError if it is none */
export function readCheckpoint(bytes: Uint8Array): TrainerState {
  const { source, tensors, metadata, facts } = open(bytes);
  const arrays = new Map([...tensors].map(([name, info]) => [name, readFloats(source, info)]));
  const examples = JSON.parse(metadata.get('examples')!, (_, value: unknown) => {
    const place = (value as { array?: number } | null)?.array;
    return place === undefined ? value : arrays.get(`example.${place}`);
  }) as Examples;
  const values = new Map([...arrays].filter(([name]) => !name.startsWith('example.')));
  return { ...facts, values, examples };
}
