import { Client } from 'pg';

/** Channel on which the worker tells the steps of what it draws, as JSON with `id`, `step` and `total`. */
const channel = 'darkroom_progress';

/** How many steps of a drawing are done. */
export interface Step {
  id: string;
  step: number;
  total: number;
}

/**
 * Hears the steps of all drawings as the worker tells them.
 * @returns a function that ends it.
 */
export async function listenToSteps(databaseUrl: string, hear: (step: Step) => void): Promise<() => Promise<void>> {
  const client = new Client({ connectionString: databaseUrl });
  // Steps are for the eye only; the drawing goes on without them.
  client.on('error', () => undefined);
  await client.connect();
  client.on('notification', ({ payload }) => hear(JSON.parse(payload ?? '{}') as Step));
  await client.query(`LISTEN ${channel}`);
  return () => client.end();
}
