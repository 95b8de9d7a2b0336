import { plainBody } from './bodies';
import { neighbourRow } from './neighbour-row';

const many = (count: number, one: (index: number) => string): string =>
  Array.from({ length: count }, (_, i) => one(i)).join();
const anyId = 'A'.repeat(24);

const bodies: [path: string, body: string][] = [
  ['/v1/prompts/collections', `{"name":"x","styles":[${many(300_000, () => '{}')}]}`],
  ['/v1/sd/text-to-image', `{${many(90_000, (i) => `"k${i}":0`)}}`],
  [`/v1/prompts/collections/${anyId}/styles`, `[${many(300_000, () => '{}')}]`],
  ['/v1/prompts/collections', `{"name":"x","styles":[{${many(90_000, (i) => `"k${i}":0`)}}]}`],
  // A hundred elements are allowed; each of them is wrong in a thousand ways.
  [`/v1/finetunes/${anyId}/prompts`, `[${many(100, () => `{${many(900, (i) => `"k${i}":0`)}}`)}]`],
  ['/v1/finetunes', `{"name":"robot","images_url":[${many(300_000, () => '0')}]}`],
];

/** Huge numbers of objects and fields: most bodies are rejected for each of them. */
export const manyFields = neighbourRow({
  name: 'many-fields',
  title: '300,000 objects, 90,000 unknown fields',
  async prepare({ first }) {
    const requests = bodies.map(([path, body]) => ({ method: 'POST', path, body: Buffer.from(body) }));
    const plain = { method: 'POST', path: '/v1/sd/text-to-image', body: plainBody(requests[0].body.length) };
    const rate = { atOnce: 2, everyMs: 1_000 };
    return {
      harmless: { name: 'a long prompt', ...rate, send: () => first.expectRefusal(plain) },
      hostile: [
        { name: 'many fields', ...rate, send: (turn) => first.expectRefusal(requests[turn % requests.length]) },
      ],
    };
  },
});
