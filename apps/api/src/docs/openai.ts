import { CreateImagesDto, ImagesDto } from '@app/domain/http';
import { applyDecorators } from '@nestjs/common';
import { ApiBearerAuth, ApiExtraModels, ApiHeader, ApiOperation, ApiResponse, getSchemaPath } from '@nestjs/swagger';
import { OpenaiProblemDto } from './problem.dto';
import { idempotencyKeyHeader } from './operation';
import { documentedError, generationIdHeader, rateHeaders, replayedHeader, requestIdHeader } from './responses';
import { TakesBody } from './takes';

const errors = [400, 401, 403, 408, 409, 413, 415, 422, 429, 503];

function error(status: number): MethodDecorator {
  const { description, codes, headers } = documentedError(status);
  return ApiResponse({
    status,
    description: `${description} In the shape of OpenAI's API. ${codes}`,
    headers,
    content: { 'application/json': { schema: { $ref: getSchemaPath(OpenaiProblemDto) } } },
  });
}

/** Documents the route in the shape of OpenAI's API. */
export const ApiOpenai = () =>
  applyDecorators(
    ApiBearerAuth(),
    ApiOperation({
      operationId: 'createImages',
      summary: "Draw pictures as OpenAI's API does",
      description:
        "For OpenAI's own clients, with `baseURL` set to `<this service>/v1`. " +
        'The answer waits until the pictures are there; they belong to a Generation like any other. ' +
        'A caller who disconnects before that cancels them. A key may have 20 such requests at each api process.',
    }),
    ApiExtraModels(CreateImagesDto, ImagesDto, OpenaiProblemDto),
    TakesBody({ required: true, schema: { $ref: getSchemaPath(CreateImagesDto) } }),
    ApiHeader(idempotencyKeyHeader),
    ApiResponse({
      status: 200,
      description: 'The pictures.',
      headers: { ...requestIdHeader, ...rateHeaders, ...replayedHeader, ...generationIdHeader },
      content: { 'application/json': { schema: { $ref: getSchemaPath(ImagesDto) } } },
    }),
    ...errors.map(error),
  );
