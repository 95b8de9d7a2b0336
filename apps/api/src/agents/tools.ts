import { isIdentifier } from '@app/domain';
import type { UploadDto } from '@app/domain/http';
import { drawingOf, drawTool } from './draw-tool';
import { inputOf, type InputSchema } from './input-schemas';
import { type OwnApi, RefusedError } from './own-api';

/** A part of a tool's answer. */
export type Content = { type: 'text'; text: string } | { type: 'image'; data: string; mimeType: string };

/** A call of a tool by an agent. */
export interface ToolCall {
  api: OwnApi;
  input: Record<string, unknown>;
  /** Aborted when the agent gives up. */
  signal: AbortSignal;
  /** Tells how far the work is, if the agent asked for it. */
  tell: (progress: number, total: number, message: string) => Promise<void>;
}

/** What an agent may do. */
export interface Tool {
  name: string;
  title: string;
  description: string;
  /** Made when tools are first listed: the document is large, and most processes are never asked. */
  input: () => InputSchema;
  isReadOnly?: boolean;
  /** @throws RefusedError with a sentence for the agent */
  run(call: ToolCall): Promise<Content[]>;
}

const record = (value: unknown): Content[] => [{ type: 'text', text: JSON.stringify(value) }];

const onlyId = (description: string): InputSchema => ({
  type: 'object',
  properties: { id: { type: 'string', description } },
  required: ['id'],
});

const nothing: InputSchema = { type: 'object', properties: {} };

/** @throws RefusedError for what is no id: it would lead to another route */
function idOf({ id }: ToolCall['input']): string {
  if (typeof id === 'string' && isIdentifier(id)) return id;
  throw new RefusedError('There is no Generation with this id.');
}

/** All tools, as the routes have them. */
export const tools: readonly Tool[] = [
  drawTool,
  {
    name: 'get_drawing',
    title: 'Look at a drawing',
    description: 'A drawing by its id: its status, how far it is, and its pictures once they are there.',
    input: () => onlyId('The id that draw told.'),
    isReadOnly: true,
    run: ({ api, input, signal }) => drawingOf(api, idOf(input), signal),
  },
  {
    name: 'cancel_drawing',
    title: 'Cancel a drawing',
    description: 'Ends a drawing that waits or is being drawn.',
    input: () => onlyId('The id of the drawing.'),
    run: async ({ api, input }) => record(await api.json('POST', `/v1/sd/text-to-image/${idOf(input)}/cancel`)),
  },
  {
    name: 'train',
    title: 'Train a Fine-Tune',
    description:
      'Trains a Fine-Tune from 4 to 100 pictures of one thing, or fetches a LoRA from weights_url, and answers at once; ' +
      'list_finetunes says how far it is. ' +
      'Its id then goes into the finetunes of draw.',
    input: () => inputOf('CreateFinetune', { without: ['webhook', 'prompts', 'styles'] }),
    run: async ({ api, input }) => record(await api.json('POST', '/v1/finetunes', input)),
  },
  {
    name: 'list_models',
    title: 'List models',
    description: 'The installed models, what each can do, and what it draws with where draw does not say.',
    input: () => nothing,
    isReadOnly: true,
    run: async ({ api }) => record(await api.json('GET', '/v1/models')),
  },
  {
    name: 'list_finetunes',
    title: 'List Fine-Tunes',
    description: 'The newest hundred Fine-Tunes, with their names, words and statuses.',
    input: () => nothing,
    isReadOnly: true,
    run: async ({ api }) => record(await api.json('GET', '/v1/finetunes?limit=100')),
  },
  {
    name: 'upload_picture',
    title: 'Upload a picture',
    description:
      'Keeps a PNG, JPEG or WebP for a day, so that draw and train take its url. Of at most 700 kB; a larger one that ' +
      'is on the web needs no upload: give its URL.',
    input: () => ({
      type: 'object',
      properties: { data: { type: 'string', description: 'The file in base64.' } },
      required: ['data'],
    }),
    run: async ({ api, input }) => {
      if (typeof input.data !== 'string') throw new RefusedError('data must be a file in base64.');
      const file = Buffer.from(input.data.replace(/^data:[^,]*,/, ''), 'base64');
      return record(await api.send<UploadDto>('/v1/uploads', file));
    },
  },
];
