import { newIdentifier, thumbnailKeyOf } from '@app/domain';
import { IMAGE_STORAGE, type ImageStorage } from '@app/storage';
import { type Settlement, Tasks, styleThumbnailFolder } from '@app/tasks';
import sharp from 'sharp';
import type { TestApi, TestKey } from './api';
import { claimTask } from './claim-task';
import { keysIn } from './stored-objects';

/** Fields of a Fine-Tune in a response. */
export interface FinetuneJson {
  id: string;
  title: string | null;
  name: string;
  token: string;
  model: string;
  status: string;
  weights: {
    kind: string;
    sha256: string;
    bytes: number;
    scale: number;
    base: string;
    unmatched: number | null;
  } | null;
  note: string | null;
  metadata: unknown;
  error_message: string | null;
  created_at: string;
}

/** Fields of a Prompt in a response; `cfg` and `seed` are strings at its creation. */
export interface PromptJson {
  id: string;
  prompt: string;
  cfg: number | string;
  seed: number | string;
  images: string[];
  created_at: string;
  [field: string]: unknown;
}

/** Fields of an error response. */
export interface ProblemJson {
  type: string;
  status: number;
  code: string;
  detail: string;
  instance: string;
  errors?: { pointer?: string; parameter?: string; message: string }[];
}

/** Registers a Fine-Tune over HTTP. */
export async function makeFinetune(api: TestApi, key: TestKey, body: object = {}): Promise<FinetuneJson> {
  const reply = await api.request<FinetuneJson>('POST', '/v1/finetunes', { key, body: { name: 'robot', ...body } });
  if (reply.status !== 201) throw new Error(`The Fine-Tune was refused: ${reply.text}`);
  return reply.body;
}

/** Makes Prompts over HTTP, in the order of `bodies`. */
export async function makePrompts(
  api: TestApi,
  key: TestKey,
  finetuneId: string,
  bodies: object[] = [{ prompt: 'a robot' }],
): Promise<PromptJson[]> {
  const path = `/v1/finetunes/${finetuneId}/prompts`;
  const reply = await api.request<PromptJson[]>('POST', path, { key, body: bodies });
  if (reply.status !== 201) throw new Error(`The Prompts were refused: ${reply.text}`);
  return reply.body;
}

/** Settles a queued task as a worker does: stores pictures of one colour, and a Prompt's thumbnail. */
export async function drawTask(
  api: TestApi,
  taskId: string,
  computeSeconds = 1,
  more: Partial<Settlement> = {},
): Promise<void> {
  const tasks = api.app.get(Tasks);
  const storage = api.app.get<ImageStorage>(IMAGE_STORAGE);
  const task = await claimTask(api.dataSource.manager, taskId);
  const size = { width: 64, height: 64 };
  const png = await sharp({ create: { ...size, channels: 3, background: 'red' } })
    .png()
    .toBuffer();
  const images = [];
  for (let index = 0; index < task.numImages; index++) {
    const storageKey = `${taskId}/${task.attempt}/${index}.png`;
    await storage.write(storageKey, png);
    const token = newIdentifier();
    images.push({
      id: newIdentifier(),
      index,
      token,
      storageKey,
      contentType: 'image/png',
      ...size,
      bytes: png.length,
      thumbnailBytes: index === 0 ? png.length : null,
    });
    if (index === 0) await storage.write(thumbnailKeyOf(storageKey), png);
  }
  if (task.kind === 'prompt') {
    const thumbnail = { storageKey: `${styleThumbnailFolder(task)}/0.png`, bytes: png.length };
    await storage.write(thumbnail.storageKey, png);
    Object.assign(images[0], { styleThumbnail: thumbnail });
  }
  await tasks.settle(task, { status: 'succeeded', images, computeSeconds, ...more });
}

/** Fails a queued task as a worker does. */
export async function failTask(
  api: TestApi,
  taskId: string,
  error: string,
  more: Partial<Settlement> = {},
): Promise<void> {
  const tasks = api.app.get(Tasks);
  const task = await claimTask(api.dataSource.manager, taskId);
  await tasks.settle(task, { status: 'failed', error, ...more });
}

/** Everything in the storage, sorted. */
export async function storedKeys(api: TestApi): Promise<string[]> {
  return keysIn(api.app.get<ImageStorage>(IMAGE_STORAGE));
}
