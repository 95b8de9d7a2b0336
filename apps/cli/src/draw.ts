import {
  type Client,
  createClient,
  DarkroomError,
  type Generation,
  type NewGeneration,
} from '../../../packages/client/src';
import { ProgressLine } from './progress-line';
import { CliError } from './run-program';

/** A finished Generation of one picture, and the bytes of that picture. */
export interface Drawn {
  record: Generation;
  data: Uint8Array;
}

/**
 * Draws pictures, all at once, and shows their steps. If one fails or `signal` aborts, it cancels the others.
 * @throws CliError in a sentence or two, with the names of invalid fields
 */
export async function draw(
  service: { url: string; token: string },
  bodies: readonly NewGeneration[],
  signal: AbortSignal,
): Promise<Drawn[]> {
  const client = createClient({ baseUrl: service.url, apiKey: service.token });
  const bar = new ProgressLine(process.stderr, 5);
  const created: Generation[] = [];
  try {
    for (const body of bodies) created.push(await create(client, body));
    const done = created.map(() => 0);
    const total = sum(created.map(({ steps }) => steps));
    bar.show(0, `waiting for the first of ${total} steps`);
    return await Promise.all(
      created.map(async ({ id }, index) => {
        const onStep = (step: number): void => {
          // A drawing that another worker starts again does not move the line back.
          done[index] = Math.max(done[index], step);
          bar.show(sum(done) / total, `step ${sum(done)} of ${total}`);
        };
        const record = await follow(client, id, onStep, signal);
        if (record.status !== 'succeeded') throw new CliError(record.error ?? `The drawing was ${record.status}.`);
        return { record, data: await client.download(record.images[0]) };
      }),
    );
  } catch (error) {
    await Promise.all(created.map(({ id }) => client.generations.cancel(id).catch(() => undefined)));
    if (!(error instanceof DarkroomError)) throw error;
    const reasons = error.errors.map(({ pointer = '', message }) => `${pointer.slice(1)} ${message}`.trim());
    throw new CliError(reasons.length > 0 ? `The service refuses it: ${reasons.join('; ')}.` : error.message);
  } finally {
    bar.end();
  }
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

/** Where the service's default is not installed, a request that names no model is drawn by the first that can. */
async function create(client: Client, body: NewGeneration): Promise<Generation> {
  try {
    return await client.generations.create(body);
  } catch (error) {
    if (!(error instanceof DarkroomError) || error.code !== 'ModelNotInstalled') throw error;
    const models = await client.models.list();
    const able = models.filter(({ problem, kind }) => problem === null && kind !== 'control' && kind !== 'safety');
    const first = able.find(({ kind }) => kind === 'text-to-image');
    if (body.model === undefined && first) return client.generations.create({ ...body, model: first.name });
    const drawable = able.flatMap((model) => [model.name, ...model.stands_in_for]);
    throw new CliError(
      `The request ${error.errors[0].message}. Name one of these with --model: ${drawable.join(', ')}.`,
    );
  }
}

/** @returns the terminated record */
async function follow(
  client: Client,
  id: string,
  onStep: (step: number) => void,
  signal: AbortSignal,
): Promise<Generation> {
  for await (const { event, data } of client.generations.events(id, { signal })) {
    if (event === 'progress') onStep(data.step);
    if (event === 'terminated') return data;
  }
  throw new CliError(`The Generation ${id} was deleted.`);
}
