import { schedulerNames } from '@app/domain';
import type { Kind } from './contract-values';
import { aspectRatio, flag, integer, metadata, number, objects, text, urls, word, words } from './contract-values';

/** A field of a body, according to the contract. */
export interface FieldRow {
  name: string;
  kind: Kind;
  /** Every other field may be left out or be null. */
  required?: boolean;
  /** The error code when it is missing, null or empty, if it has its own. */
  missingCode?: string;
}

/** An operation with a body, and a valid body. `{…}` in its strings are ids of the test's world. */
export interface BodyRow {
  operation: string;
  /** One object, or an array of 1 to 100 objects. */
  shape: 'object' | 'array';
  /** The array is in this field of an otherwise valid object. */
  within?: { field: string; rest: Record<string, unknown> };
  valid: Record<string, unknown>;
  fields: readonly FieldRow[];
}

const prompt = text(1, 2000, (length) => `robot${' robot'.repeat(400)}`.slice(0, length).padEnd(length, 'x'));
const id = text(1, 200);
const name = text(1, 200);
const cfg = number(1, 20);
const steps = integer(1, 50);
const seed = integer(0, 4_294_967_295);
const ratio = { name: 'aspect_ratio', kind: aspectRatio };
const data = { name: 'metadata', kind: metadata };
const large = { name: 'high_resolution', kind: flag };
const promptFields: readonly FieldRow[] = [
  { name: 'prompt', kind: prompt, required: true, missingCode: 'PromptMissing' },
  { name: 'negative_prompt', kind: text(0, 2000) },
  { name: 'cfg', kind: cfg },
  { name: 'steps', kind: steps },
  { name: 'seed', kind: seed },
  large,
  ratio,
  data,
];
const styleFields: readonly FieldRow[] = [
  { name: 'id', kind: id, required: true },
  { name: 'name', kind: name, required: true },
  { name: 'cfg', kind: cfg },
  { name: 'steps', kind: steps },
];
const modelName = words('sd1.5', 'sd2.1', 'shapes', 'a'.repeat(64));

/** Every body of the contract, except those of keys and of OpenAI's route, which have spec files of their own. */
export const bodies: readonly BodyRow[] = [
  {
    operation: 'createGeneration',
    shape: 'object',
    valid: { prompt: 'a robot' },
    fields: [
      ...promptFields,
      { name: 'webhook', kind: urls.one },
      { name: 'model', kind: modelName },
      { name: 'num_generations', kind: integer(1, 8) },
      { name: 'scheduler', kind: words(...schedulerNames) },
      { name: 'output_format', kind: words('png', 'jpeg', 'webp') },
      { name: 'prompt_weighting', kind: flag },
    ],
  },
  {
    operation: 'createFinetuneOrGeneration',
    shape: 'object',
    valid: { name: 'robot', title: 'mine' },
    fields: [
      { name: 'name', kind: word(200), required: true, missingCode: 'FineTuneNameMissing' },
      { name: 'title', kind: name },
      { name: 'token', kind: word(64) },
      { name: 'model', kind: modelName },
      data,
      { name: 'images_url', kind: urls.many(4, 100) },
    ],
  },
  {
    operation: 'updateFinetune',
    shape: 'object',
    valid: { title: 'mine' },
    fields: [{ name: 'title', kind: text(0, 200) }, data, { name: 'scale', kind: number(0, 2) }],
  },
  {
    operation: 'createPrompts',
    shape: 'array',
    valid: { prompt: 'a robot' },
    fields: [...promptFields, { name: 'webhook', kind: urls.one }],
  },
  {
    operation: 'applyStyles',
    shape: 'array',
    valid: { id: '{style}' },
    fields: [
      { name: 'id', kind: id, required: true },
      { name: 'seed', kind: seed },
      large,
      ratio,
      data,
      { name: 'webhook', kind: urls.one },
    ],
  },
  {
    operation: 'createCollection',
    shape: 'object',
    valid: { name: 'scenes', styles: [{ id: '{prompt}', name: 'night' }] },
    fields: [
      { name: 'name', kind: name, required: true },
      { name: 'styles', kind: objects(0, 100, { id: '{prompt}', name: 'night' }), required: true },
    ],
  },
  {
    operation: 'createCollection',
    shape: 'array',
    within: { field: 'styles', rest: { name: 'scenes' } },
    valid: { id: '{prompt}', name: 'night' },
    fields: styleFields,
  },
  { operation: 'createStyles', shape: 'array', valid: { id: '{prompt}', name: 'night' }, fields: styleFields },
];
