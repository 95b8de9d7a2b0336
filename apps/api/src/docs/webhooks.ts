import { FinetuneDto, GenerationDto, PromptDto } from '@app/domain/http';
import { getSchemaPath, type OpenAPIObject } from '@nestjs/swagger';
import { withoutDto } from './schemas';

type Webhooks = NonNullable<OpenAPIObject['webhooks']>;
type Operation = NonNullable<OpenAPIObject['paths'][string]['post']>;

const headers: readonly (readonly [name: string, description: string, schema: object, example: string])[] = [
  [
    'webhook-id',
    'Names the delivery, the same at every try: a receiver that keeps it takes nothing twice.',
    { type: 'string', pattern: '^[A-Za-z0-9_-]{24}$' },
    '4f2kQ0yq8S3zVn1xRb7TdA9w',
  ],
  [
    'webhook-timestamp',
    'Unix time in seconds of this try. Refuse what is older than five minutes.',
    { type: 'string', pattern: '^[0-9]+$' },
    '1795166493',
  ],
  [
    'webhook-signature',
    '`v1,` and the base64 of the HMAC-SHA256 of `<webhook-id>.<webhook-timestamp>.<body>`, with the bytes of the body as received; ' +
      'the HMAC key is the base64 behind `whsec_` in the secret of the API key. ' +
      'Several, with spaces between them, while a secret is being rotated: one of them must fit.',
    { type: 'string', pattern: '^v1,[A-Za-z0-9+/=]+( v1,[A-Za-z0-9+/=]+)*$' },
    'v1,mOMYQqkfQZPcvNQ6dqV2fFrvXV3Ph0Dq9rNFQJ8TxCk=',
  ],
];

function webhook(operationId: string, name: string, route: string, record: new () => object): Webhooks[string] {
  const post: Operation = {
    operationId,
    summary: `A ${name} has terminated`,
    description:
      `Posted to the \`webhook\` of a ${name} when it has reached a terminated status: the record exactly as \`GET ${route}\` returns it. ` +
      'The headers are those of Standard Webhooks. A 2xx within 15 s is success; a redirect is a failure; ' +
      'anything but success is tried again, ten times in all over three days, and no sooner than `Retry-After` says, up to a day.',
    tags: ['Webhooks'],
    security: [],
    parameters: headers.map(([header, description, schema, example]) => ({
      name: header,
      in: 'header',
      required: true,
      description,
      schema,
      example,
    })),
    requestBody: {
      required: true,
      description: `The ${name}.`,
      content: { 'application/json': { schema: { $ref: withoutDto(getSchemaPath(record)) } } },
    },
    responses: {
      '2XX': { description: 'Received; it is not sent again.' },
      '410': { description: 'Gone: it is not tried again.' },
      default: { description: 'Not received; it is tried again later.' },
    },
  };
  return { post };
}

/** Bodies that the service posts to its callers. */
export const webhooks: Webhooks = {
  generationTerminated: webhook('generationTerminated', 'Generation', '/v1/sd/text-to-image/{id}', GenerationDto),
  promptTerminated: webhook('promptTerminated', 'Prompt', '/v1/finetunes/{id}/prompts/{prompt_id}', PromptDto),
  finetuneTerminated: webhook('finetuneTerminated', 'Fine-Tune', '/v1/finetunes/{id}', FinetuneDto),
};
