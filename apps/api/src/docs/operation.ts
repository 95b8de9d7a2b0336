import { limits } from '@app/domain';
import { DeletedDto, PageQueryDto } from '@app/domain/http';
import { applyDecorators } from '@nestjs/common';
import {
  ApiBearerAuth,
  ApiConsumes,
  ApiExtraModels,
  ApiHeader,
  ApiOperation,
  ApiResponse,
  getSchemaPath,
} from '@nestjs/swagger';
import { ProblemDto } from './problem.dto';
import {
  ApiProblem,
  errorsOfAll,
  linkHeader,
  locationHeader,
  rateHeaders,
  replayedHeader,
  headersOfAll,
} from './responses';
import { TakesBody, TakesQuery } from './takes';

type Model = new () => object;

interface Operation {
  /** If several: any one of them. */
  body?: Model | readonly Model[];
  bodyIsOptional?: boolean;
  /** An array of 1 to 100 of them. */
  bodyIsArray?: boolean;
  /** Largest size, if the body is a file. */
  fileBytes?: number;
  /** If several: any one of them. */
  reply: Model | readonly Model[];
  replyIsArray?: boolean;
  isList?: boolean;
  /** Whether the response has a `Location`. */
  isLocated?: boolean;
  /** Besides those that every route has. */
  errors?: readonly number[];
  description: string;
}

const errorsOfBodies = [400, 408, 413, 415];

function operation(id: string, summary: string, success: number, options: Operation): MethodDecorator {
  const { description, fileBytes, bodyIsArray, bodyIsOptional, replyIsArray, isList, isLocated } = options;
  const bodies = [options.body ?? []].flat();
  const replies = [options.reply].flat();
  const reply = schemaOf(replies);
  const hasBody = bodies.length > 0 || fileBytes !== undefined;
  const errors = new Set([...(options.errors ?? []), ...(hasBody ? errorsOfBodies : []), ...errorsOfAll]);
  return applyDecorators(
    ApiBearerAuth(),
    ApiOperation({ operationId: id, summary, description }),
    ApiExtraModels(...replies, ProblemDto, ...bodies),
    ...(bodies.length > 0 ? [TakesBody({ required: !bodyIsOptional, schema: bodySchema(bodies, bodyIsArray) })] : []),
    ...(fileBytes ? [fileBody(fileBytes)] : []),
    ApiResponse({
      status: success,
      description: 'Done.',
      headers: {
        ...headersOfAll,
        ...rateHeaders,
        ...(isList && linkHeader),
        ...(isLocated && locationHeader),
        ...(success === 201 && replayedHeader),
      },
      content: {
        'application/json': {
          schema: replyIsArray ? { type: 'array', items: reply } : reply,
        },
      },
    }),
    ...[...errors].sort((a, b) => a - b).map(ApiProblem),
  );
}

function schemaOf(models: readonly Model[]) {
  const references = models.map((model) => ({ $ref: getSchemaPath(model) }));
  return references.length === 1 ? references[0] : { oneOf: references };
}

function bodySchema(bodies: readonly Model[], isArray?: boolean) {
  const element = schemaOf(bodies);
  return isArray ? { type: 'array', items: element, minItems: 1, maxItems: limits.arrayLength } : element;
}

function fileBody(maxLength: number): MethodDecorator {
  return applyDecorators(
    ApiConsumes('application/octet-stream'),
    TakesBody({ required: true, schema: { type: 'string', format: 'binary', minLength: 1, maxLength } }),
  );
}

/** The header of every POST that makes its repetition safe. */
export const idempotencyKeyHeader: Parameters<typeof ApiHeader>[0] = {
  name: 'Idempotency-Key',
  required: false,
  description:
    'A word of your own for this request: for 24 hours, a repeat with the same body gets the first reply and changes nothing. A request that failed stores nothing, so it may be repeated.',
  schema: { type: 'string', pattern: '^[!-~]{1,255}$' },
};

/** Documents a POST. */
export const ApiCreates = (id: string, summary: string, options: Operation) =>
  applyDecorators(
    operation(id, summary, 201, { ...options, errors: [...errorsOfBodies, 409, 422, ...(options.errors ?? [])] }),
    ApiHeader(idempotencyKeyHeader),
  );

/** Documents a POST of a file that is read, and not kept. */
export const ApiVerifies = (id: string, summary: string, options: Operation & { fileBytes: number }) =>
  operation(id, summary, 200, { ...options, errors: [422, ...(options.errors ?? [])] });

/** Documents that the answer to a POST may wait. */
export const ApiPrefersWait = () =>
  ApiHeader({
    name: 'Prefer',
    required: false,
    description:
      '`wait=<seconds>`, from 1 to 60, or `wait`, which means 60: the answer waits for the terminated record, at most so long. ' +
      '`Preference-Applied` in the answer says that it did; a key may have 20 answers waiting at each api process, ' +
      'and a further one does not wait.',
    schema: { type: 'string' },
    example: 'wait=30',
  });

/** Documents a GET that always succeeds. */
export const ApiReads = (id: string, summary: string, options: Operation) => operation(id, summary, 200, options);

/** Documents a GET of one record. */
export const ApiFinds = (id: string, summary: string, options: Operation) =>
  operation(id, summary, 200, { ...options, errors: [404, ...(options.errors ?? [])] });

/** Documents a GET of a list, newest first, with its paging. */
export const ApiLists = (id: string, summary: string, options: Operation) =>
  applyDecorators(
    operation(id, summary, 200, {
      ...options,
      replyIsArray: true,
      isList: true,
      errors: [400, ...(options.errors ?? [])],
    }),
    TakesQuery(PageQueryDto),
  );

/** Documents a PUT of a file. */
export const ApiUploads = (id: string, summary: string, options: Operation & { fileBytes: number }) =>
  operation(id, summary, 200, { ...options, errors: [404, ...(options.errors ?? [])] });

/** Documents a GET of a file. */
export const ApiDownloads = (id: string, summary: string, { description }: Pick<Operation, 'description'>) =>
  applyDecorators(
    ApiBearerAuth(),
    ApiOperation({ operationId: id, summary, description }),
    ApiExtraModels(ProblemDto),
    ApiResponse({
      status: 200,
      description: 'The file.',
      headers: { ...headersOfAll, ...rateHeaders },
      content: { 'application/octet-stream': { schema: { type: 'string', format: 'binary' } } },
    }),
    ...[...errorsOfAll, 404, 422].map(ApiProblem),
  );

/** Documents a PATCH. */
export const ApiChanges = (id: string, summary: string, options: Operation) =>
  operation(id, summary, 200, { ...options, errors: [404, 422, ...(options.errors ?? [])] });

/** Documents a DELETE. */
export const ApiRemoves = (id: string, summary: string, options: Omit<Operation, 'reply'>) =>
  operation(id, summary, 200, { ...options, reply: DeletedDto, errors: [404, ...(options.errors ?? [])] });
