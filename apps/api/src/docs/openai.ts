import { limits, outputFormats } from '@app/domain';
import {
  CompletedImageDto,
  CreateImagesDto,
  EditImagesDto,
  imageQualities,
  imageResponseFormats,
  ImagesDto,
  PartialImageDto,
} from '@app/domain/http';
import { applyDecorators } from '@nestjs/common';
import {
  ApiBearerAuth,
  type ApiBodyOptions,
  ApiExtraModels,
  ApiHeader,
  ApiOperation,
  ApiResponse,
  getSchemaPath,
} from '@nestjs/swagger';
import { OpenaiProblemDto } from './problem.dto';
import { idempotencyKeyHeader } from './operation';
import {
  documentedError,
  drawnByHeader,
  generationIdHeader,
  rateHeaders,
  replayedHeader,
  headersOfAll,
} from './responses';
import { event } from './stream';
import { TakesBody } from './takes';

const errors = [400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 503];

function error(status: number): MethodDecorator {
  const { description, codes, headers } = documentedError(status);
  return ApiResponse({
    status,
    description: `${description} In the shape of OpenAI's API. ${codes}`,
    headers,
    content: { 'application/json': { schema: { $ref: getSchemaPath(OpenaiProblemDto) } } },
  });
}

const answers = [ImagesDto, PartialImageDto, CompletedImageDto, OpenaiProblemDto];

/** @param kind how the types of events begin */
const answer = (kind: 'image_generation' | 'image_edit') =>
  ApiResponse({
    status: 200,
    description: 'The pictures; with `stream` an event for each, and for those of some steps before, or `error`.',
    headers: { ...headersOfAll, ...rateHeaders, ...replayedHeader, ...generationIdHeader, ...drawnByHeader },
    content: {
      'application/json': { schema: { $ref: getSchemaPath(ImagesDto) } },
      'text/event-stream': {
        schema: {
          oneOf: [
            event(`${kind}.partial_image`, { $ref: getSchemaPath(PartialImageDto) }),
            event(`${kind}.completed`, { $ref: getSchemaPath(CompletedImageDto) }),
            event('error', { $ref: getSchemaPath(OpenaiProblemDto) }),
          ],
        },
      },
    },
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
        'A caller who disconnects before the end cancels them, unless the same request comes again within 15 s: it gets the same Generation. A key may have 200 such requests at each api process.',
    }),
    ApiExtraModels(CreateImagesDto, ...answers),
    TakesBody({ required: true, schema: { $ref: getSchemaPath(CreateImagesDto) } }),
    ApiHeader(idempotencyKeyHeader),
    answer('image_generation'),
    ...errors.map(error),
  );

const file = (description: string) => ({ type: 'string', contentMediaType: 'application/octet-stream', description });
const switchText = { type: 'string', enum: ['true', 'false'] };

type Schema = Extract<ApiBodyOptions, { schema: unknown }>['schema'];

/** A form has numbers and switches as texts. */
const formSchema = {
  type: 'object',
  required: ['image', 'prompt'],
  properties: {
    image: file(
      'A PNG, JPEG or WebP picture; `image[]` is taken too. Up to four times for a model that looks at pictures.',
    ),
    mask: file('What is repainted is transparent in it. Of the size of `image`.'),
    prompt: { type: 'string', maxLength: limits.promptLength, description: 'What the whole picture shows.' },
    model: { type: 'string', description: 'An installed model, or a name of `MODEL_ALIASES`.' },
    n: { type: 'integer', minimum: limits.openai.images.min, maximum: limits.openai.images.max },
    size: { type: 'string', description: 'As in JSON; auto is the nearest to the picture.' },
    quality: { type: 'string', enum: [...imageQualities] },
    background: { type: 'string', enum: ['opaque', 'auto'] },
    output_format: { type: 'string', enum: [...outputFormats] },
    output_compression: { type: 'integer', minimum: limits.compression.min, maximum: limits.compression.max },
    response_format: { type: 'string', enum: [...imageResponseFormats] },
    stream: switchText,
    partial_images: {
      type: 'integer',
      minimum: limits.openai.partialImages.min,
      maximum: limits.openai.partialImages.max,
    },
    safety_identifier: { type: 'string', maxLength: limits.openai.user },
    user: { type: 'string', maxLength: limits.openai.user },
  },
} as const;

/** Documents the route that changes a picture in the shape of OpenAI's API. */
export const ApiOpenaiEdits = () =>
  applyDecorators(
    ApiBearerAuth(),
    ApiOperation({
      operationId: 'editImages',
      summary: "Change a picture as OpenAI's API does",
      description:
        'Repaints the parts that are transparent in `mask`, or without one in `image`; where nothing is transparent, the whole picture is drawn from. Several pictures are looked at as `references` are, by a model that can. ' +
        'The files are kept as uploads as long as the Generation. JSON has pictures as data URLs, URLs or ids of uploads. All else is as in `POST /v1/images/generations`.',
      requestBody: {
        required: true,
        content: {
          'application/json': { schema: { $ref: getSchemaPath(EditImagesDto) } },
          'multipart/form-data': { schema: formSchema as unknown as Schema },
        },
      },
    }),
    ApiExtraModels(EditImagesDto, ...answers),
    ApiHeader(idempotencyKeyHeader),
    answer('image_edit'),
    ...errors.map(error),
  );
