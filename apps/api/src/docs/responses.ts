import { type ErrorCode, errorTable, problemType } from '@app/domain';
import { ApiResponse, type ApiResponseOptions, getSchemaPath } from '@nestjs/swagger';
import { exampleUrl, ProblemDto } from './problem.dto';

type HeadersObject = NonNullable<ApiResponseOptions['headers']>;

interface ErrorText {
  /** Meaning of the status in this service. */
  description: string;
  /** Text of the example; its `code` is the status's first one. */
  detail: string;
  headers?: HeadersObject;
}

/** On errors that pass. */
const retryAfter: HeadersObject = {
  'Retry-After': {
    description: 'Seconds to wait before the next try.',
    required: true,
    schema: { type: 'integer', minimum: 1 },
  },
};

const errorTexts: Readonly<Record<number, ErrorText>> = {
  400: {
    description: 'The request is malformed or a field is invalid.',
    detail: '"/cfg" must be from 1 to 20, got 25.',
  },
  401: {
    description: 'The API key is missing, unknown or revoked.',
    detail: 'A valid API key is needed: send the header Authorization: Bearer <key>.',
    headers: {
      'WWW-Authenticate': { description: 'How to present a key.', required: true, schema: { type: 'string' } },
    },
  },
  403: {
    description: 'The key lacks the scope, or the Collection is public: it can be read and applied, not changed.',
    detail:
      'This needs the scope "write", which this API key lacks. Use a key that has it; the service\'s operator makes one.',
  },
  404: {
    description: 'There is nothing of yours with this id.',
    detail: 'There is no Generation with this id.',
  },
  408: {
    description: 'The body came too slowly.',
    detail: 'The body must come within 30 s.',
  },
  409: {
    description: 'It conflicts with the present state.',
    detail: 'The Generation has succeeded and cannot be canceled.',
    headers: {
      'Retry-After': { ...retryAfter['Retry-After'], description: 'With IdempotencyKeyInUse.', required: false },
    },
  },
  413: {
    description: 'The body is too large.',
    detail: 'The body must be at most 1000000 bytes.',
  },
  415: {
    description: 'The body is of another type.',
    detail: 'The body must be JSON in UTF-8 (Content-Type: application/json), got text/plain.',
  },
  422: {
    description: 'Well-formed, but impossible.',
    detail: 'The model "sdxl" is not installed; GET /v1/models lists sd1.5, klein.',
  },
  429: {
    description:
      'Too many requests, Generations and Prompts waiting, uploads or event streams at once, or complete lists running.',
    detail: 'This API key may make 600 requests a minute. Try again in 3 s.',
    headers: retryAfter,
  },
  503: {
    description: 'A dependency is down.',
    detail: 'The service cannot reach its database. Try again shortly.',
    headers: retryAfter,
  },
};

/** Errors that any route may return. */
export const errorsOfAll: readonly number[] = [400, 401, 403, 429, 503];

/** Headers of every response. */
export const headersOfAll: HeadersObject = {
  'X-Request-Id': {
    description: 'Names the request in the logs: the one that was sent, if it fits this pattern.',
    required: true,
    schema: { type: 'string', pattern: '^[A-Za-z0-9._-]{1,128}$' },
  },
  'X-Darkroom-Version': {
    description: 'The version of the service: another first number says that its contract has changed.',
    required: true,
    schema: { type: 'string', pattern: String.raw`^\d+\.\d+\.\d+` },
  },
};

/** Headers of responses to keys with a rate limit. */
export const rateHeaders: HeadersObject = Object.fromEntries(
  [
    ['Limit', 'Requests that the key may make in a minute.'],
    ['Remaining', 'Those that are left now.'],
    ['Reset', 'Seconds until all are there again.'],
  ].map(([name, description]) => [`RateLimit-${name}`, { description, schema: { type: 'integer', minimum: 0 } }]),
);

/** Headers of every page of a list except the last. */
export const linkHeader: HeadersObject = {
  Link: {
    description: 'The next page, with `rel="next"`; absent on the last one and without `limit`.',
    schema: { type: 'string' },
    example: '<https://darkroom.example/v1/sd/text-to-image?limit=10&after=Zk3vR8wq1TnYc5bLx0JdGm>; rel="next"',
  },
};

/** Headers of a response with a record that can be read elsewhere. */
export const locationHeader: HeadersObject = {
  Location: {
    description: 'Where the record can be read.',
    schema: { type: 'string', format: 'uri' },
    example: 'https://darkroom.example/v1/sd/text-to-image/4f2kQ0yq8S3zVn1xRb7TdA9w',
  },
};

/** Headers of a reply that was first sent to an earlier request with the same `Idempotency-Key`. */
export const replayedHeader: HeadersObject = {
  'Idempotency-Replayed': {
    description: 'Present, and `true`, if an earlier request got this reply first.',
    schema: { type: 'string', enum: ['true'] },
  },
};

/** The header of an answer whose body has no place for the Generation. */
export const generationIdHeader: HeadersObject = {
  'X-Generation-Id': {
    description: 'The Generation, which `GET /v1/sd/text-to-image/:id` has with its seed and `served_by`.',
    schema: { type: 'string' },
  },
};

/** The header of an answer whose body has no place for the weights. */
export const drawnByHeader: HeadersObject = {
  'X-Darkroom-Model': {
    description: 'Name and hash of the weights that draw, as in `served_by` of the Generation.',
    schema: { type: 'string' },
  },
};

/** Errors that only undocumented routes return. */
const ofOtherRoutes: readonly ErrorCode[] = ['ImageNotFound', 'RouteNotFound'];

/** Description of an error in the document, in any shape of its body. */
export function documentedError(status: number): { description: string; codes: string; headers: HeadersObject } {
  const { description, headers } = errorTexts[status];
  const codes = codesOf(status).map((code) => `\`${code}\``);
  return {
    description,
    codes: `Codes: ${codes.join(', ')}.`,
    headers: { ...headersOfAll, ...(status !== 401 && rateHeaders), ...headers },
  };
}

/** Documents an error of a route: its headers and its body, with an example. */
export function ApiProblem(status: number): MethodDecorator {
  const { description, codes, headers } = documentedError(status);
  const [code] = codesOf(status);
  const example = {
    type: problemType(exampleUrl, code),
    title: rowOf(status).title,
    status,
    detail: errorTexts[status].detail,
    instance: '0f5a8d0e-7a5c-4b0e-9a53-3a8a2f2f7f4c',
    code,
    ...(status === 400 && { errors: [{ pointer: '/cfg', message: 'must be from 1 to 20, got 25' }] }),
  };
  return ApiResponse({
    status,
    description: `${description} ${codes}`,
    headers,
    content: { 'application/problem+json': { schema: { $ref: getSchemaPath(ProblemDto) }, example } },
  });
}

function rowOf(status: number) {
  const row = Object.values(errorTable).find((row) => row.status === status);
  if (!row) throw new Error(`The table of errors has none with the status ${status}.`);
  return row;
}

/** Every `code` that a documented route returns with a status. */
function codesOf(status: number): readonly ErrorCode[] {
  const codes = Object.keys(rowOf(status).codes) as ErrorCode[];
  return codes.filter((code) => !ofOtherRoutes.includes(code));
}
