import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import {
  type Client,
  createClient,
  DarkroomError,
  type Finetune,
  type NewGeneration,
} from '../../../packages/client/src';
import { draw, type Drawn } from './draw';
import { formatDuration, ProgressLine } from './progress-line';
import { CliError } from './run-program';

/** Ten pictures of a robot, each with its caption. */
const folder = resolve(__dirname, '..', '..', '..', '..', 'docs', 'robot');

/** An object that the bundled model does not know, in a colour of which there is no picture. */
export const trainedPrompt = 'a pink zwx robot on a gray background';
const seed = 7;

/** A Fine-Tune that was trained, and a picture of the same prompt and seed without it and with it. */
export interface Trained {
  finetune: Finetune;
  before: Drawn;
  after: Drawn;
}

/**
 * Trains a Fine-Tune from the pictures of a robot, and shows its steps. If it fails or `signal` aborts, it is canceled.
 * @throws CliError in a sentence
 */
export async function train(
  service: { url: string; token: string },
  body: NewGeneration,
  signal: AbortSignal,
): Promise<Trained> {
  const client = createClient({ baseUrl: service.url, apiKey: service.token });
  const order = { seed, ...definedOf(body) };
  const [before] = await draw(service, [order], signal);
  const finetune = await trained(client, order.model ?? undefined, signal);
  const [after] = await draw(service, [{ ...order, finetunes: [{ id: finetune.id }] }], signal);
  return { finetune, before, after };
}

async function trained(client: Client, model: string | undefined, signal: AbortSignal): Promise<Finetune> {
  const bar = new ProgressLine(process.stderr, 5);
  let id: string | undefined;
  try {
    const captions = JSON.parse(readFileSync(join(folder, 'captions.json'), 'utf8')) as Record<string, string>;
    const names = readdirSync(folder).filter((name) => name in captions);
    const images_url: string[] = [];
    for (const name of names) {
      const picture = await client.uploads.create(readFileSync(join(folder, name)), { signal });
      images_url.push(picture.url);
    }
    ({ id } = await client.finetunes.create({
      ...{ name: 'robot', token: 'zwx', title: 'The robot of the demo', model, images_url },
      captions: names.map((name) => captions[name]),
    }));
    bar.show(0, 'waiting for the first step of the training');
    return await followed(client, id, bar, signal);
  } catch (error) {
    if (id !== undefined) await client.finetunes.cancel(id).catch(() => undefined);
    throw error instanceof DarkroomError ? new CliError(error.message) : error;
  } finally {
    bar.end();
  }
}

async function followed(client: Client, id: string, bar: ProgressLine, signal: AbortSignal): Promise<Finetune> {
  let begun: { step: number; at: number } | undefined;
  for await (const { event, data } of client.finetunes.events(id, { signal })) {
    if (event === 'terminated') {
      if (data.status === 'ready') return data;
      throw new CliError(data.error_message ?? `The training was ${data.status}.`);
    }
    if (event !== 'progress') continue;
    const { step, total, loss } = data;
    begun ??= { step, at: Date.now() };
    const left = ((Date.now() - begun.at) / 1000 / Math.max(1, step - begun.step)) * (total - step);
    const words = [`training step ${step} of ${total}`, `loss ${loss?.toFixed(3)}`, `${formatDuration(left)} left`];
    bar.show(step / total, words.slice(0, step > begun.step ? 3 : 2).join(', '));
  }
  throw new CliError(`The Fine-Tune ${id} was deleted.`);
}

const definedOf = (body: NewGeneration): NewGeneration =>
  Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined)) as NewGeneration;
