import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { EmbeddedPostgres, migrate } from '@app/database';
import { freePort } from '../../support/free-port';
import { audit, comeToRest } from '../audit';
import type { Row } from '../row';
import { untilOk } from '../site';

/** How long the api may take to be ready after its database is back. */
const readyLimitMs = 10_000;
/** How long the database is away. */
const outageMs = 1_500;
/** Between two of the other requests of a sender; each of them may take long while the database is away. */
const pauseMs = { long: 20, short: 150 };

/** Reads and writes of every kind that need no worker. */
const otherRequests: [string, string, object?][] = [
  ['GET', '/v1/sd/text-to-image?limit=10'],
  ['GET', '/v1/usage'],
  ['GET', '/v1/models'],
  ['GET', '/v1/prompts/collections?limit=10'],
  ['POST', '/v1/finetunes', { name: 'torture', model: 'shapes' }],
  ['GET', '/v1/finetunes?limit=10'],
];
const keyed = (method: string): Record<string, string> =>
  method === 'POST' ? { 'idempotency-key': randomUUID() } : {};

/** PostgreSQL is stopped in fast mode and by kill -9 while pictures are requested and drawn. */
export const databaseRestart: Row = {
  name: 'database-restart',
  title: 'PostgreSQL restarted (fast, -9) three times',
  async run(site, size) {
    const jobs = size === 'long' ? 100 : 6;
    const port = await freePort();
    let postgres = await EmbeddedPostgres.start(site.dataDir, { port });
    site.finally(() => postgres.stop());
    await migrate(postgres.url);
    await site.moveTo(postgres.url);
    const api = await site.startApi();
    const workers = await site.anyWorkers();
    const caller = await site.newCaller(api);
    const picture = { webhook: site.receiver.url, steps: site.lastingSteps };
    const [problems, readyMs]: [string[], number[]] = [[], []];
    let isOver = false;
    const asking = (async () => {
      for (; api.process.isRunning && (!isOver || site.ledger.entries.size < jobs); await delay(isOver ? 10 : 100))
        if (site.ledger.entries.size < jobs) await caller.create(picture);
        else await caller.request('GET', '/v1/sd/text-to-image?limit=1');
    })();
    // Other requests must not break in other ways meanwhile.
    const others = [...otherRequests, ...otherRequests].map(async ([method, path, body]) => {
      for (; !isOver; await delay(pauseMs[size])) await caller.request(method, path, body, keyed(method));
    });

    for (const how of ['fast', 'kill -9', 'fast']) {
      await delay(1_500);
      const [{ pid }] = await site.query<{ pid: number }>(
        `SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1)::int AS pid`,
      );
      if (how === 'kill -9') process.kill(pid, 'SIGKILL');
      await postgres.stop();
      await delay(outageMs);
      postgres = await EmbeddedPostgres.start(site.dataDir, { port });
      const backAt = Date.now();
      await untilOk(`${api.url}/health/ready`, () => api.process.isRunning);
      readyMs.push(Date.now() - backAt);
    }
    isOver = true;
    await Promise.all([asking, ...others]);
    problems.push(...(await comeToRest(site)));
    for (const { name, isRunning, output } of [api.process, ...workers])
      if (!isRunning) problems.push(`the ${name} ended with its database: ${output.slice(-1_500)}`);
    // A short run on a busy machine says little about time, so it is reported but not checked.
    if (size === 'long' && Math.max(...readyMs) > readyLimitMs)
      problems.push(`ready only after ${Math.max(...readyMs)} ms`);
    const odd = [...site.ledger.statuses.keys()].filter((status) => ![200, 201, 503].includes(status));
    if (odd.length > 0) problems.push(`answered otherwise than with 200, 201 or 503: ${site.ledger.summary()}`);
    const notes = { 'ready again after ms': readyMs.join(', ') };
    // A receiver's response that could not be stored without a database makes the delivery repeat, with the same id.
    return audit(site, { problems, mayBeUnavailable: true, mayRepeatWebhooks: true, notes });
  },
};
