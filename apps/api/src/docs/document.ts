import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { INestApplication } from '@nestjs/common';
import type { OpenAPIObject } from '@nestjs/swagger';
import { DocumentBuilder, SwaggerModule } from '@nestjs/swagger';
import { withExamples } from './examples';

type Schemas = NonNullable<NonNullable<OpenAPIObject['components']>['schemas']>;
type Responses = NonNullable<NonNullable<OpenAPIObject['components']>['responses']>;
type Operation = NonNullable<OpenAPIObject['paths'][string]['get']>;

const description = `Draws pictures from text with Stable Diffusion.

Every route needs \`Authorization: Bearer <API_KEY>\`. Errors are \`application/problem+json\` (RFC 9457) with a stable \`code\`.
An id that is unknown and one that belongs to another caller get the same answer.`;

const tags: readonly (readonly [name: string, description: string])[] = [
  ['Text to image', 'Pictures from a prompt. Creating one answers at once; its pictures follow.'],
  ['Fine-Tunes', 'Objects of your own: a class noun, the token that calls the object, and its trained weights.'],
  ['Prompts', 'Pictures of a Fine-Tune.'],
  ['Collections', 'Named sets of Styles, your own and the public ones.'],
  ['Styles', 'Texts made from Prompts, with their controls, that any Fine-Tune can be drawn in.'],
  ['Events', 'Live progress, as server-sent events.'],
  ['Webhooks', 'What was posted where, and how it went.'],
  ['Models', 'What is installed.'],
  ['Usage', 'What was drawn.'],
];

/** Builds the OpenAPI 3.1 document from the routes of an app. `serverUrl` is only known at run time. */
export function createDocument(app: INestApplication, serverUrl?: string): OpenAPIObject {
  const builder = new DocumentBuilder()
    .setOpenAPIVersion('3.1.0')
    .setTitle('Darkroom')
    .setDescription(description)
    .setVersion(packageVersion())
    .addBearerAuth({ type: 'http', scheme: 'bearer', description: 'An API key: dr_<12 characters>_<43 characters>.' });
  for (const tag of tags) builder.addTag(...tag);
  const document = named(SwaggerModule.createDocument(app, builder.build()));
  const { title, description: text, version } = document.info;
  const responses: Responses = {};
  for (const operation of operationsOf(document)) {
    describeIds(operation);
    shareErrors(operation, responses);
  }
  return {
    openapi: document.openapi,
    info: { title, description: text, version, license: { name: 'Apache License 2.0', identifier: 'Apache-2.0' } },
    ...(serverUrl && { servers: [{ url: serverUrl }] }),
    tags: document.tags,
    paths: document.paths,
    components: { ...document.components, schemas: withExamples(closed(document.components?.schemas)), responses },
  } as OpenAPIObject;
}

/** Removes the suffix Dto of our classes from schema names. */
function named(document: OpenAPIObject): OpenAPIObject {
  const { schemas = {}, ...components } = document.components ?? {};
  const renamed = Object.entries(schemas).map(([name, schema]) => [name.replace(/Dto$/, ''), schema] as const);
  const json = JSON.stringify({ ...document, components: { ...components, schemas: Object.fromEntries(renamed) } });
  return JSON.parse(json.replace(/(#\/components\/schemas\/\w+)Dto"/g, '$1"')) as OpenAPIObject;
}

/** Forbids undocumented fields in requests and responses. */
function closed(schemas: Schemas = {}): Schemas {
  const close = (schema: Schemas[string]) =>
    'properties' in schema && schema.additionalProperties === undefined
      ? { ...schema, additionalProperties: false }
      : schema;
  return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, close(schema)]));
}

/** Every path parameter is the id of a resource. */
function describeIds({ parameters = [] }: Operation): void {
  for (const parameter of parameters)
    if ('in' in parameter && parameter.in === 'path')
      parameter.schema = { type: 'string', pattern: '^[A-Za-z0-9_-]{24}$', example: '4f2kQ0yq8S3zVn1xRb7TdA9w' };
}

/** The errors of a status are the same on all routes, and are documented once. */
function shareErrors({ responses }: Operation, shared: Responses): void {
  for (const [status, response] of Object.entries(responses))
    if (response && 'content' in response && response.content?.['application/problem+json']) {
      shared[`Problem${status}`] = response;
      responses[status] = { $ref: `#/components/responses/Problem${status}` };
    }
}

function operationsOf({ paths }: OpenAPIObject): Operation[] {
  return Object.values(paths).flatMap(({ get, put, post, delete: remove }) =>
    [get, put, post, remove].filter((operation) => operation !== undefined),
  );
}

/** The nearest package.json above this file, in the source and in the build, is that of the service. */
function packageVersion(folder = __dirname): string {
  try {
    return (JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { version: string }).version;
  } catch (error) {
    if (folder === join(folder, '..')) throw error;
    return packageVersion(join(folder, '..'));
  }
}
