import type { Row } from '../../row';
import { plainBody } from './first-key';
import { neighbourRow } from './neighbour-row';

type Bodies = [path: string, body: string][];

/** Bodies of 1 MB that are all refused, beside a prompt that is as long. */
const hugeBodies = (name: string, title: string, bodies: Bodies): Row =>
  neighbourRow({
    name,
    title,
    async prepare({ first }) {
      const requests = bodies.map(([path, body]) => ({ method: 'POST', path, body: Buffer.from(body) }));
      const plain = { method: 'POST', path: '/v1/sd/text-to-image', body: plainBody(requests[0].body.length) };
      const rate = { atOnce: 2, everyMs: 1_000 };
      return {
        harmless: { name: 'a long prompt', ...rate, send: () => first.expectRefusal(plain) },
        hostile: [{ name: title, ...rate, send: (turn) => first.expectRefusal(requests[turn % requests.length]) }],
      };
    },
  });

/** Length of the key, and number of zeros or objects below it: 990 kB. */
const keyLength = 490_000;
const zeros = 250_000;

const key = 'k'.repeat(keyLength);
/** Positions of the key. */
const frames: [path: string, body: (value: string) => string][] = [
  ['/v1/sd/text-to-image', (value) => `{"${key}":${value}}`],
  ['/v1/sd/text-to-image', (value) => `{"prompt":"a red circle","metadata":{"${key}":${value}}}`],
  ['/v1/finetunes', (value) => `{"name":"robot","metadata":{"${key}":${value}}}`],
  ['/v1/prompts/collections', (value) => `{"name":"x","styles":[{"${key}":${value}}]}`],
];
const values = [`[${'0,'.repeat(zeros - 1)}0]`, `[${'{},'.repeat(160_000)}{}]`, `[${'"",'.repeat(160_000)}""]`];

/** A long key with many children, each of which has a pointer with all of that key. */
export const longKeys = hugeBodies(
  'long-keys',
  'one key of 490,000 characters over 250,000 zeros',
  values.flatMap((value) => frames.map(([path, body]): Bodies[number] => [path, body(value)])),
);

const many = (count: number, one: (index: number) => string): string =>
  Array.from({ length: count }, (_, i) => one(i)).join();
const anyId = 'A'.repeat(24);

/** Huge numbers of objects and fields: most bodies are rejected for each of them. */
export const manyFields = hugeBodies('many-fields', '300,000 objects, 90,000 unknown fields', [
  ['/v1/prompts/collections', `{"name":"x","styles":[${many(300_000, () => '{}')}]}`],
  ['/v1/sd/text-to-image', `{${many(90_000, (i) => `"k${i}":0`)}}`],
  [`/v1/prompts/collections/${anyId}/styles`, `[${many(300_000, () => '{}')}]`],
  ['/v1/prompts/collections', `{"name":"x","styles":[{${many(90_000, (i) => `"k${i}":0`)}}]}`],
  // A hundred elements are allowed; each of them is wrong in a thousand ways.
  [`/v1/finetunes/${anyId}/prompts`, `[${many(100, () => `{${many(900, (i) => `"k${i}":0`)}}`)}]`],
  ['/v1/finetunes', `{"name":"robot","images_url":[${many(300_000, () => '0')}]}`],
]);
