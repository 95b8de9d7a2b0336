import { DeletedDto } from '@app/domain';
import { applyDecorators } from '@nestjs/common';
import {
  ApiBearerAuth,
  ApiBody,
  ApiExtraModels,
  ApiOperation,
  ApiParam,
  ApiQuery,
  ApiResponse,
  getSchemaPath,
} from '@nestjs/swagger';
import { ProblemDto } from './problem.dto';

type Model = new () => object;

interface Operation {
  body?: Model;
  /** The body is an array of 1 to 100 of them. */
  bodyIsArray?: boolean;
  reply: Model;
  replyIsArray?: boolean;
  /** Statuses beyond those every route has. */
  errors?: readonly number[];
  /** Path parameters, in order. */
  params?: readonly string[];
  description?: string;
}

const errorText: Readonly<Record<number, string>> = {
  400: 'The request is malformed or a field is invalid.',
  401: 'The API key is missing, unknown or revoked.',
  403: 'It is public: readable by you, changed by nobody.',
  404: 'There is nothing of yours with this id.',
  409: 'It conflicts with the present state.',
  413: 'The body is too large.',
  415: 'The body is not JSON.',
  422: 'Well-formed, but impossible.',
  429: 'Too many requests; Retry-After says when to come back.',
  503: 'A dependency is down; Retry-After says when to come back.',
};

function operation(id: string, summary: string, success: number, options: Operation): MethodDecorator {
  const { body, reply, params = [], description } = options;
  const item = { $ref: getSchemaPath(reply) };
  const schema = options.replyIsArray ? { type: 'array', items: item } : item;
  const errors = [...new Set([...(options.errors ?? []), ...(body ? [400, 413, 415] : []), 401, 503])].sort(
    (a, b) => a - b,
  );
  return applyDecorators(
    ApiBearerAuth(),
    ApiOperation({ operationId: id, summary, ...(description && { description }) }),
    ApiExtraModels(reply, ProblemDto, ...(body ? [body] : [])),
    ...params.map((name) => ApiParam({ name, schema: { type: 'string', minLength: 1 } })),
    ...(body ? [requestBody(body, options.bodyIsArray)] : []),
    ApiResponse({ status: success, description: 'Done.', schema, headers: requestIdHeader }),
    ...errors.map((status) =>
      ApiResponse({
        status,
        description: errorText[status],
        content: { 'application/problem+json': { schema: { $ref: getSchemaPath(ProblemDto) } } },
        ...((status === 503 || status === 429) && { headers: { 'Retry-After': { schema: { type: 'integer' } } } }),
        ...(status === 401 && { headers: { 'WWW-Authenticate': { schema: { type: 'string' } } } }),
      }),
    ),
  );
}

const requestIdHeader = {
  'X-Request-Id': { description: 'Names the request in the logs.', schema: { type: 'string' } },
};

function requestBody(body: Model, isArray?: boolean): MethodDecorator {
  const item = { $ref: getSchemaPath(body) };
  return ApiBody({
    required: true,
    schema: isArray ? { type: 'array', items: item, minItems: 1, maxItems: 100 } : item,
  });
}

/** Documents a POST. */
export const ApiCreates = (id: string, summary: string, options: Operation) => operation(id, summary, 201, options);

/** Documents a GET of one thing. */
export const ApiFinds = (id: string, summary: string, options: Operation) =>
  operation(id, summary, 200, { ...options, errors: [404, ...(options.errors ?? [])] });

/** Documents a GET of a list, newest first, with its paging. */
export const ApiLists = (id: string, summary: string, options: Operation) =>
  applyDecorators(
    operation(id, summary, 200, { ...options, replyIsArray: true, errors: [400, ...(options.errors ?? [])] }),
    ApiQuery({ name: 'limit', required: false, schema: { type: 'integer', minimum: 1, maximum: 100 } }),
    ApiQuery({
      name: 'after',
      required: false,
      description: 'Id of the last element of the page before.',
      schema: { type: 'string' },
    }),
  );

/** Documents a DELETE. */
export const ApiRemoves = (id: string, summary: string, options: Partial<Operation> = {}) =>
  operation(id, summary, 200, { ...options, reply: DeletedDto, errors: [404, ...(options.errors ?? [])] });
