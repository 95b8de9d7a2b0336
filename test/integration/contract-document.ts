import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { resolve, type Schema, type Values, valuesOf } from './contract-values';

interface OperationJson {
  operationId: string;
  parameters?: { in: string; name: string; schema: Schema }[];
  requestBody?: { required?: boolean; content: Record<string, { schema: Schema }> };
  responses: Record<string, { content?: Record<string, { schema: Schema }> }>;
}

const document = JSON.parse(readFileSync(join(__dirname, '..', '..', 'openapi.json'), 'utf8')) as {
  paths: Record<string, Record<string, OperationJson>>;
};
const operations = Object.values(document.paths).flatMap((item) => Object.values(item));
const operationOf = (id: string): OperationJson => operations.find(({ operationId }) => operationId === id)!;

/** A field of a body. */
interface FieldRow extends Values {
  name: string;
  required: boolean;
}

/** An operation with a body, and a valid body. `{…}` in its strings are ids of the test's world. */
export interface BodyRow {
  operation: string;
  /** One object, or an array of objects. */
  shape: 'object' | 'array';
  /** The array is in this field of an otherwise valid object. */
  within?: { field: string; rest: Record<string, unknown> };
  valid: Record<string, unknown>;
  fields: readonly FieldRow[];
  /** Whether there must be a body. */
  required: boolean;
}

/** A body of each operation. */
const valid: readonly Pick<BodyRow, 'operation' | 'valid' | 'within'>[] = [
  { operation: 'createGeneration', valid: { prompt: 'a robot' } },
  {
    operation: 'createGeneration',
    within: { field: 'finetunes', rest: { prompt: 'a robot' } },
    valid: { id: '{tuned}', scale: 0.5 },
  },
  {
    operation: 'createGeneration',
    within: { field: 'control', rest: { prompt: 'a robot' } },
    valid: { image: 'https://pictures.example/edges.png', model: 'canny' },
  },
  { operation: 'createFinetuneOrGeneration', valid: { name: 'robot', title: 'mine' } },
  { operation: 'updateFinetune', valid: { title: 'mine' } },
  { operation: 'createPrompts', valid: { prompt: 'a robot' } },
  { operation: 'applyStyles', valid: { id: '{style}' } },
  { operation: 'createCollection', valid: { name: 'scenes', styles: [{ id: '{prompt}', name: 'night' }] } },
  {
    operation: 'createCollection',
    within: { field: 'styles', rest: { name: 'scenes' } },
    valid: { id: '{prompt}', name: 'night' },
  },
  { operation: 'createStyles', valid: { id: '{prompt}', name: 'night' } },
  { operation: 'createKey', valid: { name: 'shop' } },
  { operation: 'updateKey', valid: { name: 'shop' } },
  { operation: 'rotateKey', valid: { grace_hours: 1 } },
  { operation: 'rotateWebhookSecret', valid: { grace_hours: 1 } },
];

/** Every body of the contract, except that of OpenAI's route, which has errors of its own (`openai.spec.ts`). */
export const bodies: readonly BodyRow[] = valid.map((row) => {
  const { content, required: needed = false } = operationOf(row.operation).requestBody!;
  const whole = content['application/json'].schema;
  const body = resolve(whole.oneOf?.[0] ?? whole);
  const place = row.within ? body.properties![row.within.field] : body;
  const { properties = {}, required = [] } = resolve(place.items ?? place);
  const fields = Object.entries(properties).map(([name, schema]) => ({
    name,
    required: required.includes(name),
    ...valuesOf(schema),
  }));
  return { ...row, shape: place.items ? 'array' : 'object', fields, required: needed };
});

/** A query parameter of an operation: accepted and rejected values. */
interface QueryRow {
  operation: string;
  name: string;
  good: readonly string[];
  bad: readonly string[];
}

const days = {
  good: ['2024-02-29'],
  bad: ['', 'today', '2026-02-30'],
};
const times = {
  good: [...days.good, '2026-11-20T09:21:33.123Z', '2026-11-20T09:21%2B01:00'],
  bad: [...days.bad, '1763630493', '2026-11-20T25:00:00Z', '2026-11-20T09:21'],
};

function ofParameter(
  name: string,
  { enum: words, type, format, anyOf, minimum, maximum, maxLength }: Schema,
): Omit<QueryRow, 'operation' | 'name'> {
  if (words) return { good: words, bad: ['', 'other', words[0].toUpperCase(), `${words[0]}&${name}=${words[0]}`] };
  if (anyOf) return times;
  if (format === 'date')
    return { good: ['1000-01-01', ...days.good], bad: [...days.bad, '2026-1-1', '2026-01-01T00:00Z'] };
  if (name === 'finetune') return { good: ['a'.repeat(24)], bad: ['', 'x', 'a'.repeat(25), '%00'] };
  if (maxLength !== undefined) return { good: ['x'], bad: ['', 'a'.repeat(maxLength + 1), '%00'] };
  if (type === 'string') return { good: [], bad: ['', 'x', 'a'.repeat(24), 'a'.repeat(22), '%00'] };
  const fraction =
    type === 'number' ? { good: ['0.75', '1e0'], bad: ['2.00000000000000000001'] } : { good: [], bad: ['1.5'] };
  return {
    good: [String(minimum), String(maximum), ...fraction.good],
    bad: [...fraction.bad, String(minimum! - 1), String(maximum! + 1), 'x', '', 'NaN', `1&${name}=1`],
  };
}

/** Every query parameter of the contract. */
export const queries: readonly QueryRow[] = operations.flatMap(({ operationId, parameters = [] }) =>
  parameters
    .filter((parameter) => parameter.in === 'query')
    .map(({ name, schema }) => ({ operation: operationId, name, ...ofParameter(name, schema) })),
);

/** The successful response of an operation. */
interface ReplyRow {
  status: number;
  /** Keys that the object, or each element, may have, and those that it has; every list in the test has an element. */
  keys: readonly string[];
  required: readonly string[];
  isArray: boolean;
  contentType: string;
}

/** The response of every operation. */
export const replies: Readonly<Record<string, ReplyRow>> = Object.fromEntries(
  operations.map(({ operationId, responses }): [string, ReplyRow] => {
    const [status, { content = {} }] = Object.entries(responses).find(([each]) => each < '300')!;
    const [[contentType, { schema }]] = Object.entries(content);
    const element = schema.items ?? schema;
    const { properties = {}, required = Object.keys(properties) } = resolve(element.oneOf?.[0] ?? element);
    return [
      operationId,
      { status: Number(status), keys: Object.keys(properties), required, isArray: 'items' in schema, contentType },
    ];
  }),
);
