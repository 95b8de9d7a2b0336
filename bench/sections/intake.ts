import { fork } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { Client } from 'pg';
import type { Load, LoadResult } from '../load';
import { type Figure, figure, interleave, median, ratios, type Section } from '../section';
import { onSite } from '../service';

interface Scenario {
  method: 'GET' | 'POST';
  connections: number;
  keys: number;
}
const scenarios = (['POST', 'GET'] as const).flatMap((method) =>
  [1, 20].flatMap((connections) => [1, 20].map((keys): Scenario => ({ method, connections, keys }))),
);
const nameOf = ({ method, connections, keys }: Scenario): string =>
  `${method}, ${connections} connection${connections > 1 ? 's' : ''}, ${keys} key${keys > 1 ? 's' : ''}`;
const body = JSON.stringify({ prompt: 'a red circle on a blue background', steps: 20 });
const recordCount = 200;
const ms = 1000;

export const intake: Section = {
  name: 'intake',
  title: 'Intake',
  about:
    'Requests that the api answers a second, divided by those of Node’s own `http` with one `pg` statement per request, on the same PostgreSQL. ' +
    'Api, bare server and load generator are separate processes. No worker runs.',
  rounds: 3,
  measure: ({ rounds }) =>
    onSite(20, async ({ databaseUrl, tokens, children, startApi }) => {
      const { url } = await startApi({
        MODELS_DIR: resolve('models'),
        MODEL_FALLBACK: 'on',
        PORT: '0',
        // No request is rejected, but each is counted.
        RATE_LIMIT_PER_MINUTE: '1000000',
        MAX_QUEUED_PER_KEY: '100000',
      });
      const [bare, generator] = ['bare-server.js', 'load.js'].map((file) =>
        fork(resolve(__dirname, '..', file), { env: { ...process.env, DATABASE_URL: databaseUrl } }),
      );
      children.push(bare, generator);
      const [{ port: barePort }] = (await once(bare, 'message')) as [{ port: number }];
      const measure = async (port: number, path: string, { method, connections, keys }: Scenario) => {
        await empty(databaseUrl);
        const used = tokens.slice(0, keys);
        const paths = method === 'POST' ? [path] : await createRecords(port, path, used);
        generator.send({ port, method, paths, tokens: used, connections, ms, body } satisfies Load);
        const [{ result, error }] = (await once(generator, 'message')) as [{ result?: LoadResult; error?: string }];
        if (!result || Object.keys(result.failures).length > 0)
          throw new Error(`port ${port}: ${error ?? JSON.stringify(result?.failures)}`);
        return result;
      };
      const apiPort = Number(new URL(url!).port);
      const sides = scenarios.flatMap((scenario) => [
        [`api ${nameOf(scenario)}`, () => measure(apiPort, '/v1/sd/text-to-image', scenario)] as const,
        [`bare ${nameOf(scenario)}`, () => measure(barePort, '/records', scenario)] as const,
      ]);
      return figuresOf(await interleave(Object.fromEntries(sides), rounds));
    }),
};

function figuresOf(results: Record<string, LoadResult[]>): Figure[] {
  const speeds = (name: string) => results[name].map(({ perSecond }) => perSecond);
  const middle = (name: string, key: 'perSecond' | 'p50' | 'p99', digits = 1) =>
    median(results[name].map((result) => result[key])).toFixed(digits);
  const figures = scenarios.map(nameOf).map((name) => {
    const [api, bare] = [`api ${name}`, `bare ${name}`];
    const detail = `${middle(api, 'perSecond', 0)} / ${middle(bare, 'perSecond', 0)} a second; p50 ${middle(api, 'p50')} ms, p99 ${middle(api, 'p99')} ms`;
    return { ...figure(`${name}: the api / bare`, ratios(speeds(api), speeds(bare))), detail };
  });
  const [many, one] = ['api POST, 20 connections, 1 key', 'api POST, 1 connection, 1 key'].map(speeds);
  return [...figures, figure('POST of one key: 20 connections / 1 connection', ratios(many, one))];
}

/** @returns paths of new records; record i belongs to key i modulo the number of keys */
async function createRecords(port: number, path: string, tokens: readonly string[]): Promise<string[]> {
  const create = async (i: number): Promise<string> => {
    const reply = await fetch(`http://127.0.0.1:${port}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${tokens[i % tokens.length]}`, 'content-type': 'application/json' },
      body,
    });
    if (reply.status !== 201) throw new Error(`${reply.status}: ${await reply.text()}`);
    return `${path}/${((await reply.json()) as { id: string }).id}`;
  };
  const paths: string[] = [];
  while (paths.length < recordCount)
    paths.push(...(await Promise.all(Array.from({ length: 20 }, (_, i) => create(paths.length + i)))));
  return paths;
}

async function empty(databaseUrl: string): Promise<void> {
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  await client.query('TRUNCATE tasks, bare_records, bullmq.job, bullmq.event CASCADE');
  await client.query('CHECKPOINT');
  await client.end();
}
