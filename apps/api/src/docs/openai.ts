import { limits } from '@app/domain';
import { CreateImagesDto, imageResponseFormats, ImagesDto } from '@app/domain/http';
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
import { OpenaiProblemDto } from './problem.dto';
import { idempotencyKeyHeader } from './operation';
import { documentedError, generationIdHeader, rateHeaders, replayedHeader, headersOfAll } from './responses';
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

const answer = ApiResponse({
  status: 200,
  description: 'The pictures.',
  headers: { ...headersOfAll, ...rateHeaders, ...replayedHeader, ...generationIdHeader },
  content: { 'application/json': { schema: { $ref: getSchemaPath(ImagesDto) } } },
});

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
        'From 45 s on it begins with white space, and breaks off behind the error if the drawing fails then. ' +
        'A caller who disconnects before the end cancels them, unless the same request comes again within 15 s: it gets the same Generation. A key may have 20 such requests at each api process.',
    }),
    ApiExtraModels(CreateImagesDto, ImagesDto, OpenaiProblemDto),
    TakesBody({ required: true, schema: { $ref: getSchemaPath(CreateImagesDto) } }),
    ApiHeader(idempotencyKeyHeader),
    answer,
    ...errors.map(error),
  );

const file = (description: string) => ({ type: 'string', contentMediaType: 'application/octet-stream', description });

/** Documents the route that changes a picture in the shape of OpenAI's API. */
export const ApiOpenaiEdits = () =>
  applyDecorators(
    ApiBearerAuth(),
    ApiOperation({
      operationId: 'editImages',
      summary: "Change a picture as OpenAI's API does",
      description:
        'Repaints the parts that are transparent in `mask`, or without one in `image`; where nothing is transparent, the whole picture is drawn from. Several pictures are looked at as `references` are, by a model that can. ' +
        'The files are kept as uploads as long as the Generation. All else is as in `POST /v1/images/generations`.',
    }),
    ApiConsumes('multipart/form-data'),
    TakesBody({
      required: true,
      schema: {
        type: 'object',
        required: ['image', 'prompt'],
        properties: {
          image: file(
            'A PNG, JPEG or WebP picture; `image[]` is taken too. Up to four times for a model that looks at pictures.',
          ),
          mask: file('What is repainted is transparent in it. Of the size of `image`.'),
          prompt: { type: 'string', maxLength: limits.promptLength, description: 'What the whole picture shows.' },
          model: { type: 'string', description: 'Name of an installed model.' },
          n: { type: 'integer', minimum: limits.numGenerations.min, maximum: limits.numGenerations.max },
          size: {
            type: 'string',
            description: 'As in `POST /v1/images/generations`; auto is the nearest to the picture.',
          },
          response_format: { type: 'string', enum: [...imageResponseFormats] },
          user: { type: 'string', maxLength: limits.nameLength },
        },
      },
    }),
    ApiHeader(idempotencyKeyHeader),
    answer,
    ...errors.map(error),
  );
