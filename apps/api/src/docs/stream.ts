import { applyDecorators } from '@nestjs/common';
import {
  ApiBearerAuth,
  ApiExtraModels,
  ApiHeader,
  ApiOperation,
  ApiProduces,
  ApiResponse,
  getSchemaPath,
} from '@nestjs/swagger';
import { ProblemDto } from './problem.dto';
import { ApiProblem, errorsOfAll, rateHeaders, headersOfAll } from './responses';

type Properties = Record<string, object>;

/** A stream's events that others do not have. */
interface More {
  /** Added to the description, after `queued`. */
  sentence: string;
  events: object[];
  /** Of `progress`. */
  progress: Properties;
}

/**
 * One kind of event: `data` is JSON with the given schema. OpenAPI 3.1 cannot describe a stream; the schema is that of
 * each event.
 */
export function event(name: string, data: object, id?: string): object {
  const properties: Properties = {
    event: { type: 'string', const: name },
    data: { type: 'string', contentMediaType: 'application/json', contentSchema: data },
    ...(id !== undefined && { id: { type: 'string', pattern: id } }),
  };
  return object(properties);
}

function object(properties: Properties): object {
  return { type: 'object', required: Object.keys(properties), properties, additionalProperties: false };
}

const steps = (min: number) => ({
  step: { type: 'integer', minimum: min, description: 'Steps that are done.' },
  total: { type: 'integer', minimum: 1, description: 'The `steps` of the record.' },
});

/** What only the streams of trainings have. */
export const ofTrainings: More = {
  sentence: '`started` when a worker has begun, or if it had before the stream was opened, ',
  events: [event('started', object(steps(0)), String.raw`^\d+-0$`)],
  progress: {
    loss: { type: 'number', description: 'Mean squared error of the step; it falls as the object is learnt.' },
  },
};

const nothing: More = { sentence: '', events: [], progress: {} };

/** Documents a GET of server-sent events about a record. */
export function ApiStreams(id: string, summary: string, record: new () => object, more = nothing) {
  const events = eventsOf(record, more);
  return applyDecorators(
    ApiBearerAuth(),
    ApiOperation({
      operationId: id,
      summary,
      description:
        `Server-sent events: \`queued\` with the position, ${more.sentence}` +
        '`progress` with step, total and now and then a preview, ' +
        '`terminated` with the record, or `deleted`, after which the stream ends. A client that comes back with the id of ' +
        '`terminated` gets 204, at which an EventSource stops. A key may have 100 streams open at each api process.',
    }),
    ApiExtraModels(ProblemDto, record),
    ApiProduces('text/event-stream'),
    ApiHeader({
      name: 'Last-Event-ID',
      required: false,
      description: 'Id of the last event that was received; what came before is not sent again.',
      schema: { type: 'string' },
    }),
    ApiResponse({
      status: 200,
      description: 'The stream.',
      headers: { ...headersOfAll, ...rateHeaders },
      content: { 'text/event-stream': { schema: { oneOf: events } } },
    }),
    ApiResponse({
      status: 204,
      description: 'The client has had the end.',
      headers: { ...headersOfAll, ...rateHeaders },
    }),
    ...[...errorsOfAll, 404].map(ApiProblem),
  );
}

function eventsOf(record: new () => object, { events, progress }: More): object[] {
  return [
    event(
      'queued',
      object({ position: { type: 'integer', minimum: 0, description: 'How many are drawn before it.' } }),
    ),
    ...events,
    event(
      'progress',
      object({
        ...steps(1),
        ...progress,
        preview: { type: ['string', 'null'], description: 'A small picture as a data: URL, now and then.' },
      }),
      String.raw`^\d+-\d+$`,
    ),
    event('terminated', { $ref: getSchemaPath(record) }, String.raw`^\d+-end$`),
    event('deleted', object({ id: { type: 'string' } })),
  ];
}
