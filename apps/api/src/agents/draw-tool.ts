import type { GenerationDto } from '@app/domain/http';
import { type OwnApi, RefusedError } from './own-api';
import { inputOf } from './input-schemas';
import type { Content, Tool, ToolCall } from './tools';

const path = '/v1/sd/text-to-image';
/** Of what an agent gets, in pixels. */
const mostWidth = 1024;

export const drawTool: Tool = {
  name: 'draw',
  title: 'Draw a picture',
  description:
    'Draws pictures from a prompt, perhaps from pictures that are given by URL, with Fine-Tunes, and waits for them. ' +
    'The answer has each picture and its URL; of pictures wider than 1024 pixels it shows a thumbnail of the first.',
  input: () => inputOf('CreateGeneration', { without: ['webhook'] }),
  run: (call) => draw(call),
};

async function draw({ api, input, signal, tell }: ToolCall): Promise<Content[]> {
  const { id, steps } = await api.json<GenerationDto>('POST', path, input);
  // Who gives up the call waits for no picture.
  const cancel = (): void => void api.json('POST', `${path}/${id}/cancel`).catch(() => undefined);
  signal.addEventListener('abort', cancel, { once: true });
  if (signal.aborted) cancel();
  let done = 0;
  for await (const { event, data } of api.events(`${path}/${id}/events`, signal)) {
    const { step, total = steps, position } = data as { step?: number; total?: number; position?: number };
    if (event === 'terminated') break;
    if (event === 'queued') await tell(0, total, `In the queue: place ${position}`);
    if (event !== 'progress' || step === undefined || step <= done) continue;
    done = step;
    await tell(step, total, `Step ${step} of ${total}`);
  }
  signal.removeEventListener('abort', cancel);
  return drawingOf(api, id, signal);
}

/** A drawing as it is, with its pictures. @param id as it stands in a path @throws RefusedError if it has failed */
export async function drawingOf(api: OwnApi, id: string, signal: AbortSignal): Promise<Content[]> {
  const record = await api.json<GenerationDto>('GET', `${path}/${id}`, undefined, signal);
  if (record.status === 'failed') throw new RefusedError(record.error ?? 'It could not be drawn.');
  // Large pictures would fill the agent's memory: there is a thumbnail of the first.
  const isLarge = record.high_resolution || record.width > mostWidth;
  const shown = isLarge ? [record.thumbnail].filter((url) => url !== null) : record.images;
  const pictures: Content[] = [];
  for (const url of shown) {
    const { file, type } = await api.picture(url, signal);
    pictures.push({ type: 'image', data: file.toString('base64'), mimeType: type });
  }
  return [...pictures, { type: 'text', text: JSON.stringify(record) }];
}
