import { newIdentifier } from '@app/domain';
import { type Reply, type RequestOptions, startTestApi } from '../support/api';
import { startReceiver } from '../support/receiver';
import { allRows, makeWorld, type Operation, operations, pathOf, resourceOf, type World } from '../support/world';
import { ofSuite } from '../support/of-suite';

interface Element {
  id: string;
}

/** The body of each operation, valid except for the ids. */
const bodies: Record<string, (world: World) => RequestOptions> = {
  createPrompts: () => ({ body: [{ prompt: 'a robot' }] }),
  applyStyles: ({ style }) => ({ body: [{ id: style }] }),
  createStyles: ({ prompt }) => ({ body: [{ id: prompt, name: 'day' }] }),
  createCollection: ({ prompt }) => ({ body: { name: 'x', styles: [{ id: prompt, name: 'day' }] } }),
  updateFinetune: () => ({ body: { title: 'mine' } }),
  putFinetuneWeights: () => ({ raw: 'weights', headers: { 'content-type': 'application/octet-stream' } }),
};

/** All non-empty subsets of some names. */
function choices(names: readonly string[]): string[][] {
  return names.reduce<string[][]>((found, name) => [...found, ...found.map((each) => [...each, name])], [[]]).slice(1);
}

// Models and keys belong to nobody: whoever may manage keys manages all, and sees the deliveries of all.
const ofAll = /^\/v1\/(?:keys|deliveries|models)\//;
const guarded = operations.filter(({ path, parameters }) => parameters.length > 0 && !ofAll.test(path));
const positions = guarded.flatMap((operation) =>
  choices(operation.parameters).map(
    (foreign) => [`${operation.method} ${operation.path}`, foreign.join(' and '), operation, foreign] as const,
  ),
);

describe('Two callers', () => {
  const receiver = ofSuite(startReceiver);
  const api = ofSuite(startTestApi);
  const [alice, bob] = [ofSuite(() => api.createKey()), ofSuite(() => api.createKey())];
  let [hers, his]: World[] = [];
  let before: Record<string, string[]>;

  beforeAll(async () => {
    [hers, his] = [await makeWorld(api, alice, receiver), await makeWorld(api, bob, receiver)];
    before = await allRows(api);
  });

  const call = (operation: Operation, path: string, body: object = bodies[operation.id]?.(his) ?? {}) =>
    api.request<{ instance: string }>(operation.method, path, { key: bob, ...body });
  const withoutInstance = ({ status, text, body }: Reply<{ instance: string }>) => [
    status,
    text.replace(body.instance, ''),
  ];

  it.each(positions)("%s treats another caller's %s as unknown", async (_, __, operation, foreign) => {
    const pathWith = (idOf: (parameter: string) => string) =>
      pathOf(operation, his, (name) => (foreign.includes(name) ? idOf(name) : his[resourceOf(operation.path, name)]));
    const known = await call(
      operation,
      pathWith((name) => hers[resourceOf(operation.path, name)]),
    );
    expect(known.status).toBe(404);
    expect(known.headers.get('content-type')).toMatch(/^application\/problem\+json/);
    for (const id of [newIdentifier(), 'short', '%00', encodeURIComponent("' OR 1=1 --")]) {
      const unknown = await call(
        operation,
        pathWith(() => id),
      );
      expect(withoutInstance(unknown)).toEqual(withoutInstance(known));
    }
  });

  it.each([
    ['createStyles', 'prompt'],
    ['createCollection', 'prompt'],
    ['applyStyles', 'style'],
    ['applyStyles', 'collection'],
  ] as const)("%s treats another caller's %s in its body as unknown", async (id, resource) => {
    const operation = operations.find((each) => each.id === id)!;
    const used = resource === 'collection' ? 'style' : resource;
    const send = (named: string) => call(operation, pathOf(operation, his), bodies[id]({ ...his, [used]: named }));
    const known = await send(hers[resource]);
    expect(known.status).toBe(422);
    const unknown = newIdentifier();
    const [status, text] = withoutInstance(await send(unknown));
    // The message repeats the id that was sent.
    expect([status, String(text).replaceAll(unknown, hers[resource])]).toEqual(withoutInstance(known));
  });

  const lists: [string, (world: World) => string, keyof World][] = [
    ['Generations', () => '/v1/sd/text-to-image', 'generation'],
    ['Fine-Tunes', () => '/v1/finetunes', 'finetune'],
    ['Collections', () => '/v1/prompts/collections', 'collection'],
    ['Prompts', ({ finetune }) => `/v1/finetunes/${finetune}/prompts`, 'prompt'],
    ['Styles', ({ collection }) => `/v1/prompts/collections/${collection}/styles`, 'style'],
  ];

  it.each(lists)('see only their own %s, whole or in pages', async (_, path, resource) => {
    for (const [key, world, other] of [
      [alice, hers, his],
      [bob, his, hers],
    ] as const) {
      for (const query of ['', '?limit=1', '?limit=100']) {
        const { body } = await api.request<Element[]>('GET', `${path(world)}${query}`, { key });
        expect(body.map(({ id }) => id)).toEqual([world[resource]]);
      }
      const beyond = await api.request('GET', `${path(world)}?after=${other[resource]}`, { key });
      const unknown = await api.request('GET', `${path(world)}?after=${newIdentifier()}`, { key });
      expect([beyond.status, beyond.body]).toEqual([
        400,
        { ...(unknown.body as object), instance: expect.any(String) as string },
      ]);
    }
  });

  it('have changed nothing of each other in these tests', async () => {
    expect(await allRows(api)).toEqual(before);
    const found = await api.request('GET', `/v1/sd/text-to-image/${hers.generation}`, { key: alice });
    expect(found.status).toBe(200);
  });
});
