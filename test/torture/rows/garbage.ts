import { randomBytes, randomInt } from 'node:crypto';
import { connect } from 'node:net';
import { join } from 'node:path';
import { audit, comeToRest } from '../audit';
import type { Row } from '../row';
import { root } from '../service-process';
import { quantile } from '../row';

/** A request that is cut short gets no answer; it counts as unanswered after this. */
const patienceMs = 3_000;
const p99LimitMs = 200;
/** Memory that is back: so much more than before at most. */
const memoryLimit = 1.1;

/** Requests nobody should send: bodies, headers, paths, and bytes that are no HTTP. */
export const garbage: Row = {
  name: 'garbage',
  title: 'garbage requests',
  async run(site, size) {
    const requests = size === 'long' ? 10_000 : 600;
    // What is held counts, not what nobody has needed to collect yet.
    const api = await site.startApi({
      nodeOptions: ['--expose-gc', '--require', join(root, 'test', 'torture', 'collect.cjs')],
    });
    const caller = await site.newCaller(api);
    const { port } = new URL(api.url);
    const durationsMs: number[] = [];
    const broken: string[] = [];
    const send = async (): Promise<void> => {
      const request = anyRequest(caller.token);
      const startedAt = performance.now();
      const reply = await rawReply(Number(port), request);
      const status = Number(/^(?:HTTP\/1\.1 100 [^]*?\r\n\r\n)?HTTP\/1\.1 (\d{3})/.exec(reply)?.[1] ?? 0);
      if (status > 0) durationsMs.push(performance.now() - startedAt);
      site.ledger.answered(status, new Headers(), reply);
      if (status >= 500) broken.push(`${request.subarray(0, 200).toString('latin1')} -> ${reply.slice(0, 200)}`);
      const made = status === 201 ? /"id":"([\w-]{24})"/.exec(reply)?.[1] : undefined;
      if (made && reply.includes('"num_generations"')) site.ledger.acknowledge(made, false);
    };
    const sendMany = async (count: number): Promise<void> => {
      let left = count;
      const one = async (): Promise<void> => {
        while (left-- > 0) await send();
      };
      await Promise.all(Array.from({ length: 8 }, one));
    };

    // Code is compiled and pools are filled before memory is looked at.
    await sendMany(Math.ceil(requests / 4));
    durationsMs.length = 0;
    const before = await api.process.heldBytes();
    await sendMany(requests);
    const uncollected = api.process.residentBytes();
    const after = await api.process.heldBytes();
    const p99Ms = Math.round(quantile(durationsMs, 0.99));
    const problems = broken.slice(0, 3);
    if (!api.process.isRunning) problems.push('the api ended');
    // A short run on a busy machine says little about time and memory: there they are told, not judged.
    if (size === 'long' && p99Ms > p99LimitMs) problems.push(`p99 is ${p99Ms} ms`);
    if (size === 'long' && after > before * memoryLimit)
      problems.push(`memory went from ${megabytes(before)} to ${megabytes(after)} MB`);
    await site.startWorker();
    await caller.createMany(2);
    problems.push(...(await comeToRest(site)));
    return audit(site, {
      problems,
      // A sound request can hide among them and name a model or size that is refused only when it is drawn.
      mayFail: /./,
      notes: {
        requests,
        'p99 ms': p99Ms,
        'memory MB': `${megabytes(before)} -> ${megabytes(after)}, ${megabytes(uncollected)} between`,
      },
    });
  },
};

const megabytes = (bytes: number): number => Math.round(bytes / 2 ** 20);
const pick = <T>(list: readonly T[]): T => list[randomInt(list.length)];
const chance = (share: number): boolean => Math.random() < share;

const ids = ['', 'x', '..', '%00', '%2e%2e%2f', '%ff', 'A'.repeat(24), 'a'.repeat(5_000), "' OR 1=1 --", '😀', '{}'];
const paths = [
  // The one behind which most lies comes up most often.
  ...Array.from({ length: 8 }, () => '/v1/sd/text-to-image'),
  '/v1/finetunes',
  '/v1/prompts/collections',
  '/v1/usage',
  '/v1/models',
  '/images/*',
  '/v1/sd/text-to-image/*',
  '/v1/sd/text-to-image/*/cancel',
  '/v1/sd/text-to-image/*/deliveries',
  '/v1/sd/text-to-image/*/deliveries/*/redeliver',
  '/v1/finetunes/*',
  '/v1/finetunes/*/prompts',
  '/v1/finetunes/*/styles',
  '/v1/finetunes/*/prompts/*',
  '/v1/finetunes/*/weights',
  '/v1/prompts/collections/*',
  '/v1/prompts/collections/*/styles/*',
  '/*',
  '/health/*',
  '/docs/*',
];
const fields = [
  'prompt',
  'negative_prompt',
  'model',
  'webhook',
  'metadata',
  'num_generations',
  'seed',
  'steps',
  'name',
];
const odd: (() => unknown)[] = [
  () => null,
  () => '',
  () => 'a red circle',
  () => '\0',
  () => '\ud800',
  () => 'x'.repeat(randomInt(1, 4_000)),
  () => -1,
  () => 1e308,
  () => 2 ** 53,
  () => 0.5,
  () => true,
  () => [],
  () => [[[[]]]],
  () => ({}),
  () => ({ constructor: 1 }),
  () => JSON.parse('{"__proto__":{"polluted":true}}') as unknown,
  () => 'http://[::1',
  () => 'file:///etc/passwd',
  () => Array.from({ length: 200 }, () => ({ id: 'x' })),
  () => randomBytes(12).toString('latin1'),
];
const oddHeaders = [
  'Content-Encoding: gzip',
  'Content-Type: text/plain',
  'Content-Type: application/json; charset=utf-16',
  'Content-Type: application/xml',
  'Expect: 100-continue',
  'Expect: 200-maybe',
  'Idempotency-Key: ',
  `Idempotency-Key: ${'k'.repeat(300)}`,
  'Transfer-Encoding: gzip, chunked',
  'Range: bytes=9-1',
  'If-None-Match: "*"',
  'Last-Event-ID: \x7f',
  'Accept: nothing/at-all',
  'Authorization: Basic eDp5',
  `X-Request-Id: ${'é'.repeat(400)}`,
  'Host: ',
  'Upgrade: websocket',
  `Cookie: ${'c='.repeat(8_000)}`,
];

/** The bytes of one request; most have a valid key, so that they get further. */
function anyRequest(token: string): Buffer {
  if (chance(0.05)) return randomBytes(randomInt(1, 600));
  const path = pick(paths).replace(/\*/g, () => pick(ids));
  const query = chance(0.3) ? `?${pick(['limit', 'after', 'scope', 'days', 'x'])}=${pick(ids)}&${pick(ids)}` : '';
  const method = pick(['GET', 'POST', 'POST', 'POST', 'DELETE', 'PUT', 'PATCH', 'HEAD', 'OPTIONS', 'TRACE', 'BREW']);
  const body = chance(0.3) ? randomBytes(randomInt(0, 300)) : Buffer.from(anyBody(), chance(0.1) ? 'latin1' : 'utf8');
  const length = chance(0.05) ? String(body.length + randomInt(-5, 20)) : String(body.length);
  const lines = [
    `${method} ${path}${query} HTTP/1.1`,
    'Host: localhost',
    ...(chance(0.9) ? [`Authorization: Bearer ${chance(0.9) ? token : pick(ids)}`] : []),
    ...(chance(0.8) ? ['Content-Type: application/json'] : []),
    ...(method === 'GET' || method === 'HEAD' ? [] : [`Content-Length: ${length}`]),
    ...(chance(0.3) ? [pick(oddHeaders)] : []),
    'Connection: close',
    '',
    '',
  ];
  const head = Buffer.from(lines.join('\r\n'), 'latin1');
  return method === 'GET' || method === 'HEAD' ? head : Buffer.concat([head, body]);
}

function anyBody(): string {
  const value = (): unknown => pick(odd)();
  const object = Object.fromEntries(Array.from({ length: randomInt(5) }, () => [pick(fields), value()]));
  // One bad field in an otherwise sound request gets furthest.
  if (chance(0.4))
    return JSON.stringify({ prompt: 'a red circle', model: 'shapes', steps: 2, [pick(fields)]: value() });
  const whole: unknown = chance(0.7) ? object : chance(0.5) ? [object] : value();
  const text = JSON.stringify(whole) ?? '';
  if (chance(0.1)) return '['.repeat(randomInt(1, 20_000));
  return chance(0.15) ? text.slice(0, randomInt(text.length + 1)) : text;
}

/** What came back until the connection ended; a sender that falls silent in the middle is cut off by us. */
function rawReply(port: number, request: Buffer): Promise<string> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    // Not ended: Node's server gives up a request whose sender has ended its side.
    const socket = connect(port, '127.0.0.1', () => socket.write(request));
    const done = (): void => {
      socket.destroy();
      resolve(Buffer.concat(chunks).toString('latin1'));
    };
    socket.setTimeout(patienceMs, done);
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('error', done);
    socket.on('close', done);
  });
}
