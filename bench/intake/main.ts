import type { ChildProcess } from 'node:child_process';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { EmbeddedPostgres, migrate } from '@app/database';
import { Client } from 'pg';
import { endAll, startApp } from '../child';
import { createKeys } from '../keys';
import { interleave, median } from '../rounds';
import type { Load, LoadResult } from './load';

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '1.5' },
    'max-queued': { type: 'string', default: '100000' },
    'sync-ms': { type: 'string', default: '0' },
    only: { type: 'string' },
    json: { type: 'boolean', default: false },
    'cpu-prof': { type: 'string' },
  },
});

const root = resolve(__dirname, '..', '..', '..');
const sides = ['bare', 'api'] as const;
type Side = (typeof sides)[number];

/** One line of the table. */
interface Scenario {
  method: 'GET' | 'POST';
  connections: number;
  keys: number;
}
const scenarios: Scenario[] = (['POST', 'GET'] as const).flatMap((method) =>
  [1, 20].flatMap((connections) => [1, 20].map((keys) => ({ method, connections, keys }))),
);
const nameOf = ({ method, connections, keys }: Scenario): string => `${method} ${connections}x${keys}`;
const body = JSON.stringify({ prompt: 'a red circle on a blue background', steps: 20 });
/** Records to GET. */
const recordCount = 200;

/**
 * Alternates between the api and the bare server, each in a process of its own on the same
 * PostgreSQL, and prints medians.
 */
async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'darkroom-bench-'));
  chmodSync(folder, 0o711);
  // The server waits before each sync, to imitate a slower disk.
  const settings = { commit_delay: String(Number(options['sync-ms']) * 1000), commit_siblings: '0' };
  const postgres = await EmbeddedPostgres.start(folder, { settings });
  const children: ChildProcess[] = [];
  try {
    await migrate(postgres.url);
    const keys = await createKeys(postgres.url, 20);
    const api = await startApi(postgres.url, folder, children);
    const bare = fork(join(__dirname, 'bare-server.js'), { env: { ...process.env, DATABASE_URL: postgres.url } });
    children.push(bare);
    const [{ port: barePort }] = (await once(bare, 'message')) as [{ port: number }];
    const generator = fork(join(__dirname, 'load.js'));
    children.push(generator);
    const targets = {
      api: { port: api, path: '/v1/sd/text-to-image' },
      bare: { port: barePort, path: '/records' },
    };
    const measure = async (side: Side, { method, connections, keys: keyCount }: Scenario, ms: number) => {
      const { port, path } = targets[side];
      await empty(postgres.url);
      const tokens = keys.slice(0, keyCount);
      const paths = method === 'POST' ? [path] : (await createRecords(port, path, tokens)).map((id) => `${path}/${id}`);
      generator.send({
        port,
        method,
        paths,
        tokens,
        connections,
        ms,
        ...(method === 'POST' && { body }),
      } satisfies Load);
      const [{ result, error }] = (await once(generator, 'message')) as [{ result?: LoadResult; error?: string }];
      if (!result || Object.keys(result.failures).length > 0)
        throw new Error(`${side}: ${error ?? JSON.stringify(result?.failures)}`);
      return result;
    };
    await report(measure);
  } finally {
    await endAll(children);
    await postgres.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function report(measure: (side: Side, scenario: Scenario, ms: number) => Promise<LoadResult>): Promise<void> {
  const wanted = scenarios.filter((scenario) => !options.only || options.only.split(',').includes(nameOf(scenario)));
  const ms = Number(options.seconds) * 1000;
  const sideOf = (side: Side, scenario: Scenario) =>
    [`${side} ${nameOf(scenario)}`, (round: number) => measure(side, scenario, round === 0 ? ms / 2 : ms)] as const;
  const results = await interleave(
    Object.fromEntries(wanted.flatMap((scenario) => sides.map((side) => sideOf(side, scenario)))),
    Number(options.rounds),
  );
  const lines = wanted.map((scenario) => {
    const of = (side: Side, value: keyof Omit<LoadResult, 'failures'>) =>
      median(results[`${side} ${nameOf(scenario)}`].map((result) => result[value]));
    const [barePerSecond, apiPerSecond] = [of('bare', 'perSecond'), of('api', 'perSecond')];
    return {
      ...scenario,
      barePerSecond: round(barePerSecond),
      apiPerSecond: round(apiPerSecond),
      ratio: round(apiPerSecond / barePerSecond, 3),
      apiP50Ms: round(of('api', 'p50'), 2),
      apiP99Ms: round(of('api', 'p99'), 2),
    };
  });
  const speedOf = (connections: number) =>
    lines.find((line) => line.method === 'POST' && line.keys === 1 && line.connections === connections)?.apiPerSecond;
  const gain = round((speedOf(20) ?? NaN) / (speedOf(1) ?? NaN), 2);
  if (options.json) {
    const ratiosOf = (name: string) =>
      results[`api ${name}`].map((api, i) => api.perSecond / results[`bare ${name}`][i].perSecond);
    const rounds = lines.map((line) => ({ ...line, ratios: ratiosOf(nameOf(line)) }));
    process.stdout.write(`${JSON.stringify({ scenarios: rounds, postOneKeyTwentyToOne: gain }, null, 2)}\n`);
  } else {
    const heads = ['', 'connections', 'keys', 'bare/s', 'api/s', 'ratio', 'p50 ms', 'p99 ms'];
    for (const cells of [heads, ...lines.map((line) => Object.values(line).map(String))])
      process.stdout.write(`${cells.map((cell) => cell.padStart(11)).join(' ')}\n`);
    process.stdout.write(`POST of one key: 20 connections make ${gain} times as many as 1.\n`);
  }
}

async function startApi(databaseUrl: string, folder: string, children: ChildProcess[]): Promise<number> {
  const profile = options['cpu-prof'];
  const env = {
    DATABASE_URL: databaseUrl,
    DATA_DIR: join(folder, 'data'),
    MODELS_DIR: join(root, 'models'),
    MODEL_FALLBACK: 'on',
    PORT: '0',
    // No request is rejected, but each is counted.
    RATE_LIMIT_PER_MINUTE: '1000000',
    MAX_QUEUED_PER_KEY: options['max-queued'],
  };
  const { child, ready } = await startApp('api', env, {
    args: profile ? ['--cpu-prof', `--cpu-prof-dir=${profile}`] : [],
  });
  children.push(child);
  return Number(new URL(ready.url!).port);
}

/** @returns ids of new records; record i belongs to key i modulo the number of keys. */
async function createRecords(port: number, path: string, tokens: readonly string[]): Promise<string[]> {
  const create = async (i: number): Promise<string> => {
    const reply = await fetch(`http://127.0.0.1:${port}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${tokens[i % tokens.length]}`, 'content-type': 'application/json' },
      body,
    });
    if (reply.status !== 201) throw new Error(`${reply.status}: ${await reply.text()}`);
    return ((await reply.json()) as { id: string }).id;
  };
  const ids: string[] = [];
  while (ids.length < recordCount)
    ids.push(...(await Promise.all(Array.from({ length: 20 }, (_, i) => create(ids.length + i)))));
  return ids;
}

/** Empties the tables before each measurement. */
async function empty(databaseUrl: string): Promise<void> {
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  await client.query('TRUNCATE tasks, bare_records, bullmq.job, bullmq.event CASCADE');
  await client.query('CHECKPOINT');
  await client.end();
}

function round(value: number, digits = 0): number {
  return Number(value.toFixed(digits));
}

main().catch((error: Error) => {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
});
