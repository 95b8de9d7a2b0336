import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { startReceiver } from '../../support/receiver';
import { until } from '../../support/until';
import { audit } from '../audit';
import type { Caller } from '../caller';
import type { Row } from '../row';
import { preload, type Site } from '../site';

/** How much memory the api may use for a hundred endless responses. */
const memoryLimitBytes = 64 * 2 ** 20;
/** Nobody listens there, and nobody will; a port that was free a moment ago may be in use now. */
const nobody = 'http://127.0.0.1:1/';
const privateAddress = /private, loopback or link-local/;

/** The loopback address in many spellings, and other special addresses: rejected when the Generation is made. */
const literals = [
  '127.0.0.1',
  '127.1',
  '127.0.1',
  '2130706433',
  '0x7f000001',
  '0177.0.0.1',
  '0x7f.0.0.1',
  '0.0.0.0',
  '[::1]',
  '[::ffff:127.0.0.1]',
  '[::127.0.0.1]',
  '[64:ff9b::127.0.0.1]',
  '①②⑦.0.0.1',
  '169.254.169.254',
  '168.63.129.16',
  'localhost',
  'LocalHost',
];

/** Names that resolve to it: rejected at delivery, when they are resolved. */
const names = ['mixed.test', 'rebind.test'];

/** One try as the log has it. */
interface Try {
  status: string;
  tries: number;
  status_code: number | null;
  error: string | null;
  wait_s: number;
}

/** Receivers that are down, slow, broken, endless or a trap. */
export const receivers: Row = {
  name: 'receivers',
  title: 'receivers of every bad kind',
  async run(site, size) {
    const endless = size === 'long' ? 100 : 12;
    const problems: string[] = [];
    const canary = await startCanary(site);
    const bad = await startBad(site, canary.port);
    const api = await site.startApi();
    const caller = await site.newCaller(api);

    const expect = async (id: string, what: string, isRight: (found: Try) => boolean): Promise<void> => {
      let found: Try | undefined;
      await until(async () => {
        found = await lastTry(site, id);
        return found && isRight(found);
      }, what).catch(() => problems.push(`${what}: ${JSON.stringify(found)}`));
    };
    const owe = (webhook: string): Promise<string> => terminated(site, caller, webhook);
    const slow = await owe(`${bad}/slow`);
    const soundMs = await deliveryMs(site, caller);
    await Promise.all([
      ...failures(bad).map(async ([url, what, isRight]) => expect(await owe(url), what, isRight)),
      expect(slow, 'slow: cut off', ({ error }) => /within 15 seconds/.test(error ?? '')),
    ]);
    const before = api.process.residentBytes();
    const flood = await Promise.all(Array.from({ length: endless }, () => owe(`${bad}/endless`)));
    for (const id of flood) await expect(id, 'endless: over', ({ status }) => status === 'delivered');
    const grownBytes = api.process.residentBytes() - before;
    if (grownBytes > memoryLimitBytes) problems.push(`memory grew by ${Math.round(grownBytes / 2 ** 20)} MB`);
    await api.process.end('SIGTERM');

    const env = { WEBHOOK_ALLOW_PRIVATE: 'off' };
    const guarded = await site.startApi({ env, nodeOptions: preload('resolver.cjs') });
    const urlTo = (host: string): string => `http://${host}:${canary.port}/`;
    problems.push(...(await accepted(caller.to(guarded.url), urlTo)));
    const isRefused = ({ error, status }: Try): boolean => privateAddress.test(error ?? '') && status !== 'delivered';
    await Promise.all(
      names.map(async (host) => expect(await terminated(site, caller.to(guarded.url), urlTo(host)), host, isRefused)),
    );
    if (canary.hits() > 0) problems.push(`the canary was hit ${canary.hits()} times`);
    return audit(site, {
      problems,
      notes: {
        'canary hits': canary.hits(),
        'spellings refused at once': literals.length,
        'names refused at delivery': names.length,
        'a sound receiver beside a slow one ms': soundMs,
        'memory grew by MB': Math.round(grownBytes / 2 ** 20),
      },
    });
  },
};

/** How long a record's end takes to arrive at a receiver that is sound. */
async function deliveryMs(site: Site, caller: Caller): Promise<number> {
  const startedAt = Date.now();
  const { id } = await caller.create({ webhook: site.receiver.url });
  await caller.end(id!, 'canceled');
  await site.receiver.next(1);
  return Date.now() - startedAt;
}

/** Where a webhook fails, what becomes of it, and how the log tells. */
function failures(bad: string): [url: string, what: string, isRight: (found: Try) => boolean][] {
  return [
    [nobody, 'down: tried again', ({ tries, error }) => tries >= 2 && !!error],
    [`${bad}/500`, '500: tried again', (found) => found.tries >= 2 && found.status_code === 500],
    [`${bad}/410`, '410: given up', (found) => found.status === 'failed' && found.tries === 1],
    [`${bad}/429`, '429: waits as asked', ({ status_code, wait_s }) => status_code === 429 && wait_s > 90],
    [`${bad}/redirect`, 'redirect: a failure', (found) => found.status_code === 302 && found.status === 'pending'],
  ];
}

/** @returns the spellings that are not refused. */
async function accepted(caller: Caller, urlTo: (host: string) => string): Promise<string[]> {
  const problems: string[] = [];
  for (const host of literals) {
    const { answer } = await caller.create({ webhook: urlTo(host) });
    const isRefused = answer.status === 422 && answer.text.includes('WebhookAddressRefused');
    if (!isRefused) problems.push(`${host}: ${answer.status} ${answer.text}`);
  }
  return problems;
}

/** Makes a record, cancels it, and so owes its webhook. */
async function terminated(site: Site, caller: Caller, webhook: string): Promise<string> {
  const { id, answer } = await caller.create({ webhook });
  if (!id) throw new Error(`${webhook}: ${answer.status} ${answer.text}`);
  await caller.end(id, 'canceled');
  // It does not go to the receiver of this scenario.
  site.ledger.entries.get(id)!.hasWebhook = false;
  return id;
}

async function lastTry(site: Site, generationId: string): Promise<Try | undefined> {
  const [found] = await site.query<Try & Record<string, unknown>>(
    `SELECT delivery.status, attempts AS tries, status_code, error,
            coalesce(extract(epoch FROM next_attempt_at - now()), 0)::float AS wait_s
     FROM webhook_deliveries delivery JOIN webhook_attempts attempt ON attempt.delivery_id = delivery.id
     WHERE task_id = $1 ORDER BY started_at DESC LIMIT 1`,
    [generationId],
  );
  return found;
}

/** Listens on every address of this machine and counts connections. */
async function startCanary(site: Site): Promise<{ port: number; hits: () => number }> {
  let hits = 0;
  const server = createServer((_, response) => response.end());
  server.on('connection', () => hits++);
  server.listen(0, '::');
  await once(server, 'listening').catch(() => once(server.listen(0, '0.0.0.0'), 'listening'));
  site.finally(async () => void server.close());
  return { port: (server.address() as AddressInfo).port, hits: () => hits };
}

/** @returns its address, without a path. */
async function startBad(site: Site, canaryPort: number): Promise<string> {
  const answers: Record<string, (response: ServerResponse) => void> = {
    '/slow': () => undefined,
    '/500': (response) => response.writeHead(500).end('broken'),
    '/410': (response) => response.writeHead(410).end(),
    '/429': (response) => response.writeHead(429, { 'retry-after': '120' }).end(),
    '/redirect': (response) => response.writeHead(302, { location: `http://127.0.0.1:${canaryPort}/` }).end(),
    '/endless': (response) => {
      const chunk = Buffer.alloc(64 * 1024, 'x');
      const pour = (): void => {
        while (!response.destroyed && response.write(chunk));
      };
      response.on('drain', pour).writeHead(200);
      pour();
    },
  };
  const receiver = await startReceiver(({ path }, response) => {
    response.on('error', () => undefined);
    answers[path]?.(response);
  });
  site.finally(() => receiver.close());
  return receiver.url;
}
