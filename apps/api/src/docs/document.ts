import { serviceVersion } from '@app/process';
import type { INestApplication } from '@nestjs/common';
import { DocumentBuilder, type OpenAPIObject, SwaggerModule } from '@nestjs/swagger';
import { closed, named, type Operation, type Responses, shareErrors, unwrapped, withExamples } from './schemas';
import { webhooks } from './webhooks';

const description = `Draws pictures from text with Stable Diffusion.

Every route needs \`Authorization: Bearer <API_KEY>\`. Errors are \`application/problem+json\` (RFC 9457) with a stable \`code\`.
An id that is unknown and one that belongs to another caller get the same answer.

### Limits

| What | Limit |
| --- | --- |
| A JSON body | 1,000,000 bytes, within 30 s; 50,000 objects and arrays, 20,000 fields, 3,000 of them in one object |
| A prompt | 32,000 characters, no more than 30 combining marks in a row; 32 chunks of 75 tokens with Stable Diffusion, 512 tokens with FLUX.2 and Z-Image, 2,048 with ERNIE-Image |
| An array of a request | 100 elements |
| \`metadata\` | 16 KB and 8 levels; 1,000,000 bytes for all Prompts that one request makes of Styles, whose texts have 1,000,000 characters together |
| Prompts that one request makes of Styles | 1,000 |
| Weights | 1 GiB, four uploads of a key at a time, at least 64 KiB in 30 s |
| A reader of an answer | takes at least 64 KiB in 30 s |
| Requests of a key that are served at a time, at each api process | 24 small ones and 8 large ones; 500 and 100 more wait |
| Event streams of a key, at each api process | 100 |
| Answers of a key that wait for pictures, at each api process | 200 |
| Complete lists of a key that are sent at a time | 1 |
| Readers of these pages | 200 |
| A sandbox key's \`metadata.sandbox\` | \`delay_ms\` from 0 to 600,000, \`fail\` of 1,000 characters |

The operator sets a key's requests per minute, its waiting Generations and Prompts, those drawn at once, and its storage.`;

const tags: readonly (readonly [name: string, description: string])[] = [
  ['Text to image', 'Pictures from a prompt. Creating one answers at once; its pictures follow.'],
  ['Fine-Tunes', 'Objects of your own: a class noun, the token that calls the object, and its trained weights.'],
  ['Prompts', 'Pictures of a Fine-Tune.'],
  ['Drawings', 'Generations and Prompts in one list.'],
  ['Collections', 'Named sets of Styles, your own and the public ones.'],
  ['Styles', 'Texts made from Prompts, with their controls, that any Fine-Tune can be drawn in.'],
  ['Uploads', 'Pictures to draw from or to train on.'],
  ['Events', 'Live progress, as server-sent events.'],
  ['Webhooks', 'What was posted where, and how it went.'],
  ['OpenAI', "Pictures in the shape of OpenAI's API, for its clients."],
  ['Models', 'What is installed.'],
  ['Usage', 'What was drawn.'],
  ['Keys', 'API keys, for keys with the scope `admin`.'],
  ['Operator', 'What the service is at, over all keys, for keys with the scope `admin`.'],
];

const anyServer = {
  url: '{scheme}://{host}',
  description: 'A Darkroom service, by default on this machine.',
  variables: {
    scheme: { default: 'http', enum: ['http', 'https'], description: '`https` behind a proxy that has a certificate.' },
    host: { default: 'localhost:3000', description: 'Host and port: the `HOST` and `PORT` of the service.' },
  },
};

/** Builds the OpenAPI 3.1 document from the routes of an app. */
export function createDocument(app: INestApplication): OpenAPIObject {
  const builder = new DocumentBuilder()
    .setOpenAPIVersion('3.1.0')
    .setTitle('Darkroom')
    .setDescription(description)
    .setVersion(serviceVersion)
    .addBearerAuth({ type: 'http', scheme: 'bearer', description: 'An API key: dr_<12 characters>_<43 characters>.' });
  for (const tag of tags) builder.addTag(...tag);
  const document = named(SwaggerModule.createDocument(app, builder.build()));
  // The builder calls a key a JWT, which it is not.
  for (const scheme of Object.values(document.components?.securitySchemes ?? {}))
    if ('bearerFormat' in scheme) delete scheme.bearerFormat;
  const { title, description: text, version } = document.info;
  const responses: Responses = {};
  for (const operation of operationsOf(document)) {
    describeIds(operation);
    shareErrors(operation, responses);
  }
  return {
    openapi: document.openapi,
    info: {
      title,
      description: text,
      version,
      contact: { name: 'The operator of this service' },
      license: { name: 'Apache License 2.0', identifier: 'Apache-2.0' },
    },
    servers: [anyServer],
    tags: document.tags,
    paths: document.paths,
    webhooks,
    components: {
      ...document.components,
      schemas: withExamples(closed(unwrapped(document.components?.schemas))),
      responses,
    },
  } as OpenAPIObject;
}

/** Every path parameter is the id of a resource, but for the name of a model. */
function describeIds({ parameters = [] }: Operation): void {
  for (const parameter of parameters)
    if ('in' in parameter && parameter.in === 'path')
      parameter.schema =
        parameter.name === 'name'
          ? { type: 'string', example: 'shapes' }
          : { type: 'string', pattern: '^[A-Za-z0-9_-]{24}$', example: '4f2kQ0yq8S3zVn1xRb7TdA9w' };
}

function operationsOf({ paths }: OpenAPIObject): Operation[] {
  return Object.values(paths).flatMap(({ get, put, post, patch, delete: remove }) =>
    [get, put, post, patch, remove].filter((operation) => operation !== undefined),
  );
}
