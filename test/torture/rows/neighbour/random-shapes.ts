import { randomInt } from 'node:crypto';
import { plainBody } from './first-key';
import { neighbourRow } from './neighbour-row';
import { makeShape, Random } from './shapes';

const shapes = 20;

/** Random inputs of 1 MB that no test has planned. */
export const randomShapes = neighbourRow({
  name: 'random',
  title: '20 random shapes of input of 1 MB',
  async prepare({ first, size }) {
    const seed = Number(process.env.TORTURE_SEED ?? randomInt(2 ** 31));
    const random = new Random(seed);
    const make = async (path: string, fields: object): Promise<string> => `${path}/${await first.make(path, fields)}`;
    const finetune = await make('/v1/finetunes', { name: 'robot', model: 'shapes' });
    const collection = await make('/v1/prompts/collections', { name: 'x', styles: [] });
    const paths = [
      '/v1/sd/text-to-image',
      '/v1/finetunes',
      `${finetune}/prompts`,
      `${finetune}/styles`,
      '/v1/prompts/collections',
      `${collection}/styles`,
    ];
    const requests = Array.from({ length: shapes }, (_, index) => makeShape(random, index, paths));
    const plain = { method: 'POST', path: '/v1/sd/text-to-image', body: plainBody(990_000) };
    const rate = { atOnce: 2, everyMs: 500 };
    const all = requests.map((shape, index) => ({
      name: `shape ${index + 1}: ${shape.name}`,
      ...rate,
      send: () => first.expectRefusal({ method: 'POST', ...shape }),
    }));
    const isLong = size === 'long';
    return {
      lastsMs: isLong ? 4_000 : 6_000,
      harmless: { name: 'a long prompt', ...rate, send: () => first.expectRefusal(plain) },
      // In the short form, each comes once.
      hostile: isLong
        ? all
        : [
            {
              name: 'shapes',
              atOnce: 2,
              everyMs: 500,
              send: async (turn) => {
                const { name, send } = all[turn % shapes];
                const problem = await send();
                return problem && `${name}: ${problem}`;
              },
            },
          ],
      notes: { seed },
    };
  },
});
