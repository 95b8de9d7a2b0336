import type { Generation, NewGeneration } from '../../../packages/client/src';
import type { GenerationClient } from './generation-client';
import { CliError } from './run-program';
import { StepBar } from './step-bar';

/** A finished Generation of one picture, and the bytes of that picture. */
export interface Drawn {
  record: Generation;
  data: Uint8Array;
}

/** Draws pictures, all at once, and shows their steps. If one fails or `signal` aborts, it cancels the others. */
export async function draw(
  client: GenerationClient,
  bodies: readonly NewGeneration[],
  signal: AbortSignal,
): Promise<Drawn[]> {
  const bar = new StepBar(process.stderr);
  const created: Generation[] = [];
  try {
    for (const body of bodies) created.push(await client.create(body));
    const done = created.map(() => 0);
    const total = sum(created.map(({ steps }) => steps));
    bar.say(`Waiting for the first of ${total} steps …`);
    return await Promise.all(
      created.map(async ({ id }, index) => {
        const onStep = (step: number): void => {
          done[index] = step;
          bar.show(sum(done), total);
        };
        const record = await client.follow(id, onStep, signal);
        if (record.status !== 'succeeded') throw new CliError(record.error ?? `The drawing was ${record.status}.`);
        return { record, data: await client.download(record.images[0]) };
      }),
    );
  } catch (error) {
    await Promise.all(created.map(({ id }) => client.cancel(id).catch(() => undefined)));
    throw error;
  } finally {
    bar.end();
  }
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
