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

/** Every body of the contract, except that of a Generation, which has its own table in generations.spec.ts. */
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
      {
        name: 'scheduler',
        kind: words('ddim', 'ddpm', 'pndm', 'lms', 'euler', 'euler_a', 'heun', 'dpmpp_2m', 'unipc', 'lcm'),
      },
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
  { operation: 'createPrompts', shape: 'array', valid: { prompt: 'a robot' }, fields: promptFields },
  {
    operation: 'applyStyles',
    shape: 'array',
    valid: { id: '{style}' },
    fields: [{ name: 'id', kind: id, required: true }, { name: 'seed', kind: seed }, large, ratio, data],
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

const finetune = ['id', 'title', 'name', 'token', 'model', 'status', 'metadata', 'error_message', 'created_at'];
const collection = ['id', 'name', 'thumbnail'];
const style = ['id', 'name', 'thumbnail'];
const promptKeys = [
  'id',
  'prompt',
  'negative_prompt',
  'cfg',
  'steps',
  'seed',
  'high_resolution',
  'aspect_ratio',
  'images',
  'metadata',
  'error_message',
  'created_at',
];
const generation = [
  'id',
  'prompt',
  'negative_prompt',
  'aspect_ratio',
  'webhook',
  'model',
  'num_generations',
  'metadata',
  'error',
  'started_at',
  'status',
  'images',
  'cfg',
  'steps',
  'seed',
  'scheduler',
  'high_resolution',
  'output_format',
  'prompt_weighting',
  'prompt_chunks',
  'upscaler',
  'served_by',
  'completed_at',
];
const delivery = ['id', 'url', 'status', 'attempts', 'next_attempt_at', 'created_at', 'completed_at'];
const deleted = ['delete'];

/** The successful response of an operation. */
export interface ReplyRow {
  status: 200 | 201;
  /** Keys of the object, or of each element; every list in the test has an element. */
  keys: readonly string[];
  isArray?: true;
  /** Whether the body has another type than JSON. */
  contentType?: string;
}

const list = (keys: readonly string[]): ReplyRow => ({ status: 200, keys, isArray: true });
const made = (keys: readonly string[]): ReplyRow => ({ status: 201, keys });
const found = (keys: readonly string[]): ReplyRow => ({ status: 200, keys });

/** The response of every operation. */
export const replies: Readonly<Record<string, ReplyRow>> = {
  createGeneration: made(generation),
  listGenerations: list(generation),
  getGeneration: found(generation),
  cancelGeneration: made(generation),
  deleteGeneration: found(deleted),
  streamGenerationEvents: { status: 200, keys: [], contentType: 'text/event-stream' },
  listDeliveries: list(delivery),
  redeliver: made(delivery),
  createFinetuneOrGeneration: made(finetune),
  listFinetunes: list(finetune),
  getFinetune: found(finetune),
  deleteFinetune: found(deleted),
  putFinetuneWeights: found(finetune),
  createPrompts: { ...made(promptKeys), isArray: true },
  applyStyles: { ...made(['id', 'error_message', 'images', 'created_at']), isArray: true },
  listPrompts: list(promptKeys),
  getPrompt: found(promptKeys),
  deletePrompt: found(deleted),
  getPromptStatus: found([
    'status',
    'queue_position',
    'step',
    'steps',
    'served_by',
    'upscaler',
    'prompt_chunks',
    'started_at',
    'completed_at',
  ]),
  streamPromptEvents: { status: 200, keys: [], contentType: 'text/event-stream' },
  createCollection: made(collection),
  listCollections: list(collection),
  getCollection: found(collection),
  deleteCollection: found(deleted),
  createStyles: { ...made(style), isArray: true },
  listStyles: list(style),
  getStyle: found(style),
  deleteStyle: found(deleted),
  listModels: list([
    'name',
    'scheduler',
    'native_size',
    'device',
    'hash',
    'bytes',
    'defaults',
    'requires_cuda',
    'stands_in_for',
    'problem',
  ]),
  listUsage: list(['day', 'images', 'steps', 'compute_seconds']),
};

/** A query parameter of an operation: accepted and rejected values. */
export interface QueryRow {
  operation: string;
  name: string;
  good: readonly string[];
  bad: readonly string[];
}

const lists = ['listGenerations', 'listFinetunes', 'listPrompts', 'listCollections', 'listStyles'];
const days = { good: ['1000-01-01', '2024-02-29'], bad: ['', 'today', '2026-02-30', '2026-1-1', '2026-01-01T00:00Z'] };

const times = {
  good: ['2026-11-20', '2026-11-20T09:21:33.123Z', '2026-11-20T09:21%2B01:00'],
  bad: ['', 'today', '2026-02-30', '1763630493', '2026-11-20T25:00:00Z', '2026-11-20T09:21'],
};

/** Every query parameter of the contract. */
export const queries: readonly QueryRow[] = [
  ...lists.flatMap((operation) => [
    { operation, name: 'limit', good: ['1', '100'], bad: ['0', '101', '-1', '1.5', 'x', '', '1&limit=2'] },
    { operation, name: 'after', good: [], bad: ['', 'x', 'a'.repeat(24), 'a'.repeat(22), '%00'] },
  ]),
  ...['listGenerations', 'listPrompts'].flatMap((operation) => [
    { operation, name: 'status', good: ['queued', 'succeeded'], bad: ['', 'done', 'QUEUED', 'queued&status=failed'] },
    { operation, name: 'created_after', ...times },
    { operation, name: 'created_before', ...times },
  ]),
  { operation: 'listCollections', name: 'scope', good: ['public'], bad: ['', 'own', 'PUBLIC', 'public&scope=public'] },
  { operation: 'listUsage', name: 'from', ...days },
  { operation: 'listUsage', name: 'to', ...days },
  { operation: 'listUsage', name: 'group_by', good: ['day', 'model', 'finetune'], bad: ['', 'key', 'DAY'] },
  {
    operation: 'putFinetuneWeights',
    name: 'scale',
    good: ['0', '2', '0.75', '1e0'],
    bad: ['-0.1', '2.01', 'x', '', 'NaN', '1&scale=1'],
  },
];
