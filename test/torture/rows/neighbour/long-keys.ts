import { plainBody } from './bodies';
import { neighbourRow } from './neighbour-row';

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
export const longKeys = neighbourRow({
  name: 'long-keys',
  title: 'one key of 490,000 characters over 250,000 zeros',
  async prepare({ first }) {
    const requests = values.flatMap((value) =>
      frames.map(([path, body]) => ({ method: 'POST', path, body: Buffer.from(body(value)) })),
    );
    const plain = { method: 'POST', path: '/v1/sd/text-to-image', body: plainBody(requests[0].body.length) };
    const rate = { atOnce: 2, everyMs: 1_000 };
    return {
      harmless: { name: 'a long prompt', ...rate, send: () => first.expectRefusal(plain) },
      hostile: [{ name: 'long keys', ...rate, send: (turn) => first.expectRefusal(requests[turn % requests.length]) }],
    };
  },
});
