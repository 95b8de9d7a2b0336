import { STATUS_CODES } from 'node:http';
import type { ApiResponseOptions } from '@nestjs/swagger';
import { ApiResponse, getSchemaPath } from '@nestjs/swagger';
import { ProblemDto } from './problem.dto';

type HeadersObject = NonNullable<ApiResponseOptions['headers']>;

interface ErrorText {
  /** What the status means here. */
  description: string;
  code: string;
  detail: string;
  headers?: HeadersObject;
}

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
    code: 'ValidationFailed',
    detail: '"/cfg" must be from 1 to 20, got 25.',
  },
  401: {
    description: 'The API key is missing, unknown or revoked.',
    code: 'Unauthorized',
    detail: 'A valid API key is needed: Authorization: Bearer <API_KEY>.',
    headers: {
      'WWW-Authenticate': { description: 'How to present a key.', required: true, schema: { type: 'string' } },
    },
  },
  403: {
    description: 'It is public: readable by you, changed by nobody.',
    code: 'PublicCollection',
    detail: 'The Collection is public: it can be read and applied, not changed.',
  },
  404: {
    description: 'There is nothing of yours with this id.',
    code: 'GenerationNotFound',
    detail: 'There is no Generation with this id.',
  },
  409: {
    description: 'It conflicts with the present state.',
    code: 'GenerationTerminated',
    detail: 'The Generation has succeeded and cannot be canceled.',
  },
  413: {
    description: 'The body is too large.',
    code: 'BodyTooLarge',
    detail: 'The body must be at most 1000000 bytes.',
  },
  415: {
    description: 'The body is of another type.',
    code: 'UnsupportedMediaType',
    detail: 'The body must be JSON in UTF-8 (Content-Type: application/json), got text/plain.',
  },
  422: {
    description: 'Well-formed, but impossible.',
    code: 'ModelNotInstalled',
    detail: 'The model "sdxl" is not installed; GET /v1/models lists those that are.',
  },
  429: {
    description: 'Too many requests.',
    code: 'TooManyRequests',
    detail: 'There were too many requests. Try again shortly.',
    headers: retryAfter,
  },
  503: {
    description: 'A dependency is down.',
    code: 'ServiceUnavailable',
    detail: 'The service cannot reach its database. Try again shortly.',
    headers: retryAfter,
  },
};

/** Errors that any route may answer with. */
export const errorsOfAll: readonly number[] = [401, 429, 503];

/** On every answer. */
export const requestIdHeader: HeadersObject = {
  'X-Request-Id': {
    description: 'Names the request in the logs: the one that was sent, where it is a plain word.',
    required: true,
    schema: { type: 'string', pattern: '^[A-Za-z0-9._-]{1,128}$' },
  },
};

/** On a page of a list that is not the last. */
export const linkHeader: HeadersObject = {
  Link: {
    description: 'The next page, with `rel="next"`; absent on the last one and without `limit`.',
    schema: { type: 'string' },
    example: '<https://darkroom.example/v1/sd/text-to-image?limit=10&after=4f2kQ0yq8S3zVn1xRb7TdA9w>; rel="next"',
  },
};

/** On a reply that an earlier request with the same `Idempotency-Key` got first. */
export const replayedHeader: HeadersObject = {
  'Idempotency-Replayed': {
    description: 'There, and `true`, when an earlier request got this reply first.',
    schema: { type: 'string', enum: ['true'] },
  },
};

/** Documents an error of a route: its headers and its body, with an example. */
export function ApiProblem(status: number): MethodDecorator {
  const { description, code, detail, headers } = errorTexts[status];
  const example = {
    type: 'about:blank',
    title: STATUS_CODES[status],
    status,
    detail,
    instance: '0f5a8d0e-7a5c-4b0e-9a53-3a8a2f2f7f4c',
    code,
    ...(status === 400 && { errors: [{ pointer: '/cfg', message: 'must be from 1 to 20, got 25' }] }),
  };
  return ApiResponse({
    status,
    description,
    headers: { ...requestIdHeader, ...headers },
    content: { 'application/problem+json': { schema: { $ref: getSchemaPath(ProblemDto) }, example } },
  });
}
