import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { basename, dirname, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';
import { figure, interleave, msOf, ratios, type Section } from '../section';
import { onSite } from '../service';

export const pickUp: Section = {
  name: 'pick-up',
  title: 'Queue pick-up',
  about:
    'From a POST to an idle service (api, worker and embedded PostgreSQL, each a process) to the moment when the worker hands the request to its engine, divided by one bare round trip: ' +
    'an `INSERT` with a `NOTIFY` from one connection until another one hears of it.',
  rounds: 30,
  measure: ({ model, device, threads, rounds }) =>
    onSite(1, async ({ databaseUrl, tokens: [token], start }) => {
      const drawing = new Map<string, number>();
      const env = { DEVICE: device, MODELS_DIR: dirname(resolve(model)), INFERENCE_THREADS: String(threads) };
      const { url } = await start('api', { ...env, RATE_LIMIT_PER_MINUTE: '0', PORT: '0' });
      await start('inference', env, ({ msg, taskId }) => {
        if (msg === 'drawing') drawing.set(taskId!, performance.now());
      });
      const [writer, listener] = [0, 1].map(() => new Client({ connectionString: databaseUrl }));
      await Promise.all([writer.connect(), listener.connect()]);
      await writer.query('CREATE TABLE bare_tasks (id uuid PRIMARY KEY)');
      await listener.query('LISTEN bare_tasks');
      const sides = {
        ours: async () => {
          const sentAt = performance.now();
          const id = await draw(`${url}/v1/sd/text-to-image`, token, basename(model));
          return drawing.get(id)! - sentAt;
        },
        bare: () => msOf(() => Promise.all([once(listener, 'notification'), notify(writer)])),
      };
      const times = await interleave(sides, rounds);
      await Promise.all([writer.end(), listener.end()]);
      return [figure('from POST to engine / INSERT and NOTIFY', ratios(times.ours, times.bare))];
    }),
};

/** Draws a picture, and waits until the service is idle again. @returns the id of the Generation */
async function draw(url: string, token: string, model: string): Promise<string> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const body = JSON.stringify({ model, prompt: 'a red circle on a blue background', steps: 1 });
  const reply = await fetch(url, { method: 'POST', headers, body });
  if (reply.status !== 201) throw new Error(`${reply.status}: ${await reply.text()}`);
  const { id } = (await reply.json()) as { id: string };
  for (let status = 'queued'; ['queued', 'processing'].includes(status); await delay(20))
    ({ status } = (await (await fetch(`${url}/${id}`, { headers })).json()) as { status: string });
  return id;
}

/** The least that a queue on PostgreSQL takes: a row that is synced to disk, and a notification. */
async function notify(writer: Client): Promise<void> {
  await writer.query(
    `WITH made AS (INSERT INTO bare_tasks VALUES ($1) RETURNING id) SELECT pg_notify('bare_tasks', id::text) FROM made`,
    [randomUUID()],
  );
}
