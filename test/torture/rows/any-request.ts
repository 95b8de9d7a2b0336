import { randomBytes, randomInt } from 'node:crypto';

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
export function anyRequest(token: string): Buffer {
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
