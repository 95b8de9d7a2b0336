import { randomUUID } from 'node:crypto';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { EmbeddedPostgres, migrate } from '@app/database';
import { Client } from 'pg';
import type { LogLine, RunningChild } from '../child';
import { endAll, startApp } from '../child';
import { createKeys } from '../keys';
import { interleave } from '../rounds';
import type { Section } from '../section';
import { figure, ratios } from '../section';

const route = '/v1/sd/text-to-image';
/** How often is looked whether a picture is done, while nothing is measured. */
const pollMs = 20;

export const pickUp: Section = {
  name: 'pick-up',
  title: 'Queue pick-up',
  about:
    'From a POST to an idle service (api, worker and embedded PostgreSQL, each a process) to the moment when the worker hands the request to its engine, divided by one bare round trip: ' +
    'an `INSERT` with a `NOTIFY` from one connection until another one hears of it.',
  rounds: 30,
  async measure({ model, threads, rounds }) {
    const folder = mkdtempSync(join(tmpdir(), 'darkroom-bench-'));
    // If this runs as root, PostgreSQL's own user must be able to enter the folder.
    chmodSync(folder, 0o711);
    const postgres = await EmbeddedPostgres.start(folder);
    const apps: RunningChild[] = [];
    const bare = new BareQueue(postgres.url);
    try {
      await migrate(postgres.url);
      const [token] = await createKeys(postgres.url, 1);
      const drawing = new Map<string, number>();
      const onLine = ({ msg, taskId }: LogLine) => void (msg === 'drawing' && drawing.set(taskId!, performance.now()));
      const env = { DATABASE_URL: postgres.url, DATA_DIR: join(folder, 'data'), DEVICE: 'cpu' };
      const shared = { ...env, MODELS_DIR: dirname(resolve(model)), INFERENCE_THREADS: String(threads) };
      const limits = { RATE_LIMIT_PER_MINUTE: '0', PORT: '0' };
      apps.push(await startApp('api', { ...shared, ...limits }), await startApp('inference', shared, { onLine }));
      await bare.open();
      const service = { url: `${apps[0].ready.url}${route}`, token, model: basename(model), drawing };
      const times = await interleave({ ours: () => pickUpMs(service), bare: () => bare.roundTripMs() }, rounds);
      return { figures: [figure('from POST to engine / INSERT and NOTIFY', ratios(times.ours, times.bare))] };
    } finally {
      await bare.close();
      await endAll(apps.map(({ child }) => child));
      await postgres.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

/** A running service, and when its worker began to draw each task. */
interface Service {
  url: string;
  token: string;
  /** As in a request. */
  model: string;
  drawing: ReadonlyMap<string, number>;
}

async function pickUpMs({ url, token, model, drawing }: Service): Promise<number> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const body = JSON.stringify({ model, prompt: 'a red circle on a blue background', steps: 1 });
  const sentAt = performance.now();
  const reply = await fetch(url, { method: 'POST', headers, body });
  if (reply.status !== 201) throw new Error(`${reply.status}: ${await reply.text()}`);
  const { id } = (await reply.json()) as { id: string };
  // The service is idle again when the picture is done.
  for (let status = 'queued'; ['queued', 'processing'].includes(status); await delay(pollMs))
    ({ status } = (await (await fetch(`${url}/${id}`, { headers })).json()) as { status: string });
  return drawing.get(id)! - sentAt;
}

/** The least that a queue on PostgreSQL takes: a row that is synced to disk, and a notification. */
class BareQueue {
  private readonly writer: Client;
  private readonly listener: Client;

  constructor(connectionString: string) {
    this.writer = new Client({ connectionString });
    this.listener = new Client({ connectionString });
  }

  async open(): Promise<void> {
    await this.writer.connect();
    await this.listener.connect();
    await this.writer.query('CREATE TABLE bare_tasks (id uuid PRIMARY KEY)');
    await this.listener.query('LISTEN bare_tasks');
  }

  async roundTripMs(): Promise<number> {
    const id = randomUUID();
    const startedAt = performance.now();
    const heard = new Promise<void>((resolve) => this.listener.once('notification', () => resolve()));
    await this.writer.query(
      `WITH made AS (INSERT INTO bare_tasks VALUES ($1) RETURNING id) SELECT pg_notify('bare_tasks', id::text) FROM made`,
      [id],
    );
    await heard;
    return performance.now() - startedAt;
  }

  async close(): Promise<void> {
    await this.writer.end();
    await this.listener.end();
  }
}
