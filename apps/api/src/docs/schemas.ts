import { isDeepStrictEqual } from 'node:util';
import type { OpenAPIObject } from '@nestjs/swagger';

export type Schemas = NonNullable<NonNullable<OpenAPIObject['components']>['schemas']>;

/** Our classes end with Dto, the schemas do not. */
export const withoutDto = (name: string): string => name.replace(/Dto$/, '');

/**
 * Gives the schemas of a document their names.
 * @throws Error if two get the same one
 */
export function named(document: OpenAPIObject): OpenAPIObject {
  const { schemas = {}, ...components } = document.components ?? {};
  for (const name of Object.keys(schemas))
    if (withoutDto(name) !== name && withoutDto(name) in schemas)
      throw new Error(`The schemas ${withoutDto(name)} and ${name} would have the same name.`);
  const renamed = Object.entries(schemas).map(([name, schema]) => [withoutDto(name), schema] as const);
  const json = JSON.stringify({ ...document, components: { ...components, schemas: Object.fromEntries(renamed) } });
  return JSON.parse(json.replace(/(#\/components\/schemas\/\w+)Dto"/g, '$1"')) as OpenAPIObject;
}

/** Forbids undocumented fields in requests and responses. */
export function closed(schemas: Schemas = {}): Schemas {
  const close = (schema: Schemas[string]) =>
    'properties' in schema && schema.additionalProperties === undefined
      ? { ...schema, additionalProperties: false }
      : schema;
  return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, close(schema)]));
}

/** OpenAPI 3.1 allows a description beside a reference; the builder still wraps both, as 3.0 needed it. */
export function unwrapped<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(unwrapped) as T;
  const entries = Object.entries(value).flatMap(([name, inner]): [string, unknown][] =>
    name === 'allOf' && Array.isArray(inner) && inner.length === 1
      ? Object.entries(unwrapped(inner[0] as object))
      : [[name, unwrapped(inner as unknown)]],
  );
  return Object.fromEntries(entries) as T;
}

export type Responses = NonNullable<NonNullable<OpenAPIObject['components']>['responses']>;
export type Operation = NonNullable<OpenAPIObject['paths'][string]['get']>;

/**
 * Documents the errors of a status once, because they are the same on all routes.
 * @throws Error if two routes document a status differently
 */
export function shareErrors({ operationId, responses }: Operation, shared: Responses): void {
  for (const [status, response] of Object.entries(responses))
    if (response && 'content' in response && response.content?.['application/problem+json']) {
      const name = `Problem${status}`;
      if (!isDeepStrictEqual((shared[name] ??= response), response))
        throw new Error(`${operationId} documents the error ${status} otherwise than another route.`);
      responses[status] = { $ref: `#/components/responses/${name}` };
    }
}

type Schema = Schemas[string];

const id = '4f2kQ0yq8S3zVn1xRb7TdA9w';
const image = 'https://darkroom.example/images/Zk3vR8wq1TnYc5bLx0JdGm7s.png';
const moment = '2026-11-20T09:21:33.123Z';

/**
 * Examples by field name: fields of the same name mean the same in all schemas, except those listed with their schema.
 */
const examples: Readonly<Record<string, unknown>> = {
  id,
  prompt: 'a red circle on a blue background',
  negative_prompt: 'blurry',
  webhook: 'https://example.com/hooks/darkroom',
  url: 'https://example.com/hooks/darkroom',
  'Image.url': image,
  'Upload.url': image,
  'Upload.bytes': 1_734_000,
  content_type: 'image/png',
  expires_at: moment,
  user: 'customer-42',
  model: 'sd1.5',
  num_generations: 1,
  metadata: { order: 42 },
  error: null,
  error_message: null,
  cfg: 7.5,
  steps: 30,
  seed: 1234567890,
  scheduler: 'euler',
  images: [image],
  'EditImages.images': [{ image_url: 'https://example.com/sketch.png' }],
  thumbnail: image,
  prompt_chunks: 1,
  upscaler: null,
  filtered: 0,
  flagged: [],
  served_by: 'shapes@0123456789ab',
  created_at: moment,
  started_at: moment,
  completed_at: moment,
  next_attempt_at: null,
  title: 'My tin robot',
  token: 'zwx',
  day: '2026-11-20',
  finetune: id,
  compute_seconds: 61.5,
  hash: '0123456789ab',
  parameter: 'limit',
  scale: 1,
  rate_limit_per_minute: 600,
  max_queued: 1000,
  max_concurrent: 0,
  max_storage_mb: 20_000,
  retention_days: 30,
  previous_token_expires_at: moment,
  previous_webhook_secret_expires_at: moment,
  sha256: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
  base: 'sd1.5@0123456789ab',
  note: null,
  bytes: 1734000000,
  stands_in_for: [],
  problem: null,
  status_code: 204,
  duration_ms: 84,
  detail: '"/cfg" must be from 1 to 20, got 25.',
  instance: '0f5a8d0e-7a5c-4b0e-9a53-3a8a2f2f7f4c',
  images_url: [1, 2, 3, 4].map((n) => `https://example.com/robot-${n}.jpg`),
  'CreateCollection.styles': [{ id, name: 'Neon night' }],
  'Collection.name': 'Night scenes',
  'Style.name': 'Neon night',
  'Finetune.name': 'robot',
  'RegisteredFinetune.name': 'robot',
  n: 1,
  grace_hours: 24,
  'Usage.images': 41,
  'Activity.images': 41,
  'Activity.time': '2026-11-20T09:00:00.000Z',
  key: id,
  'Training.images': 10,
  'CreateFinetune.steps': 500,
  prompts: [],
  'CreateFinetune.prompts': [{ prompt: 'a robot on a striped background' }],
  key_id: id,
  record_id: id,
  oldest_at: moment,
  drawn_since: moment,
  heartbeat_at: moment,
  memory_bytes: 1734000000,
  picture_bytes: 5_200_000_000,
  weight_bytes: 300_000_000,
  record_bytes: 12_000_000,
  upload_bytes: 0,
  limit_bytes: 20_000_000_000,
  disk_free_bytes: 180_000_000_000,
  disk_total_bytes: 500_000_000_000,
};

/** Adds an example to every field of the document that has none. */
export function withExamples(schemas: Schemas): Schemas {
  return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, withExample(name, schema)]));
}

function withExample(name: string, schema: Schema): Schema {
  if (!('properties' in schema)) return schema;
  const properties = Object.entries(schema.properties ?? {}).map(([field, property]): [string, Schema] => {
    const example = examples[`${name}.${field}`] ?? examples[field];
    const isPlain = !('$ref' in property) && property.example === undefined && example !== undefined;
    return [field, isPlain ? { ...property, example } : property];
  });
  return { ...schema, properties: Object.fromEntries(properties) };
}
