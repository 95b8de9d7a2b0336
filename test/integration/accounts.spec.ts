import { ApiKey, newIdentifier, Task } from '@app/domain';
import { type RequestOptions, startTestApi, type TestKey } from '../support/api';
import { drawTask, makeFinetune, makePrompts } from '../support/factories';
import { newTask } from '../support/new-task';
import { ofSuite } from '../support/of-suite';
import { startReceiver } from '../support/receiver';
import { makeTuned, makeWorld, type World } from '../support/world';
import { AccountsOfRecords1796270100000 } from '../../libs/database/src/migrations/1796270000000-accounts';

interface Named {
  id: string;
}

describe('The keys of an account', () => {
  const receiver = ofSuite(startReceiver);
  // A picture's URL needs a port.
  const api = ofSuite(() => startTestApi({ PUBLIC_URL: 'http://localhost:3999' }));
  const alice = ofSuite(() => api.createKey());
  // A key that a test revokes or limits is its own.
  const sibling = (values: Partial<ApiKey> = {}) => api.createKey({ accountId: alice.id, ...values });
  const ally = ofSuite(() => sibling());
  const stranger = ofSuite(() => api.createKey());
  let hers: World;

  beforeAll(async () => {
    hers = await makeWorld(api, alice, receiver);
  });

  const call = <T = Named>(method: string, path: string, { key = ally, ...rest }: RequestOptions = {}) =>
    api.request<T>(method, `/v1${path}`, { key, ...rest });
  const draw = async (key: TestKey, body: object = {}): Promise<string> =>
    (await api.request<Named>('POST', '/v1/sd/text-to-image', { key, body: { prompt: 'a star', ...body } })).body.id;
  const storedOf = async ({ id }: TestKey): Promise<number> => {
    const [row] = await api.dataSource.query<{ bytes: string }[]>(
      'SELECT picture_bytes + weight_bytes + reserved_bytes + record_bytes AS bytes FROM storage_use WHERE owner_id = $1',
      [id],
    );
    return Number(row?.bytes ?? 0);
  };
  const ownerOf = async (id: string) => (await api.dataSource.manager.findOneByOrFail(Task, { id })).ownerId;

  const paths: [string, (world: World) => string][] = [
    ['a Generation', ({ generation }) => `/sd/text-to-image/${generation}`],
    ['its deliveries', ({ generation }) => `/sd/text-to-image/${generation}/deliveries`],
    ['Generations', () => '/sd/text-to-image'],
    ['a Fine-Tune', ({ finetune }) => `/finetunes/${finetune}`],
    ['Fine-Tunes', () => '/finetunes'],
    ['a Prompt', ({ finetune, prompt }) => `/finetunes/${finetune}/prompts/${prompt}`],
    ['its status', ({ finetune, prompt }) => `/finetunes/${finetune}/prompts/${prompt}/status`],
    ['Prompts', ({ finetune }) => `/finetunes/${finetune}/prompts`],
    ['a Collection', ({ collection }) => `/prompts/collections/${collection}`],
    ['Collections', () => '/prompts/collections'],
    ['a Style', ({ collection, style }) => `/prompts/collections/${collection}/styles/${style}`],
    ['Styles', ({ collection }) => `/prompts/collections/${collection}/styles`],
    ['an upload', ({ upload }) => `/uploads/${upload}`],
    ['uploads', () => '/uploads'],
  ];

  it.each(paths)('read %s of one another', async (_, path) => {
    const [mine, theirs] = [await call('GET', path(hers), { key: alice }), await call('GET', path(hers))];
    expect([theirs.status, theirs.body]).toEqual([200, mine.body]);
  });

  it('follow the events of one another, and send webhooks of one another again', async () => {
    const events = await call('GET', `/sd/text-to-image/${hers.generation}/events`);
    expect([events.status, events.text]).toEqual([200, expect.stringContaining(hers.generation)]);
    const again = await call('POST', `/sd/text-to-image/${hers.generation}/deliveries/${hers.delivery}/redeliver`);
    expect(again.status).toBe(201);
  });

  it('draw with Fine-Tunes, Styles and pictures of one another, each at its own charge', async () => {
    const [{ id: prompt }] = await makePrompts(api, ally, hers.finetune);
    const applied = await call<Named[]>('POST', `/finetunes/${hers.finetune}/styles`, {
      body: [{ id: hers.collection }],
    });
    const { body: upload } = await call<{ url: string }>('GET', `/uploads/${hers.upload}`);
    const { body: drawn } = await call<{ images: string[] }>('GET', `/sd/text-to-image/${hers.generation}`);
    const made = [prompt, applied.body[0].id];
    for (const image of [upload.url, drawn.images[0]]) made.push(await draw(ally, { image }));
    made.push(await draw(ally, { finetunes: [{ id: await makeTuned(api, alice) }] }));
    for (const id of made) expect(await ownerOf(id)).toBe(ally.id);
    await drawTask(api, prompt);
    const usage = await call<object[]>('GET', '/usage?group_by=finetune');
    expect(usage.body).toMatchObject([{ finetune: hers.finetune, images: 1 }]);
    const { body: records } = await call('GET', `/finetunes/${hers.finetune}/prompts/${prompt}`, { key: alice });
    expect(records.id).toBe(prompt);
  });

  it('change, cancel and delete records of one another, whose bytes go back to the key that made them', async () => {
    const [before, allied] = [await storedOf(alice), await storedOf(ally)];
    const finetune = await makeFinetune(api, alice);
    const [{ id: prompt }] = await makePrompts(api, alice, finetune.id);
    const { body: collection } = await call('POST', '/prompts/collections', {
      key: alice,
      body: { name: 'x', styles: [{ id: prompt, name: 'by her' }] },
    });
    const styles = [{ id: prompt, name: 'by the other' }];
    await call('POST', `/prompts/collections/${collection.id}/styles`, { body: styles });
    const [waiting] = [await draw(alice)];
    expect(await storedOf(alice)).toBeGreaterThan(before);
    expect(await storedOf(ally)).toBeGreaterThan(allied);

    const renamed = await call('PATCH', `/finetunes/${finetune.id}`, { body: { title: 'ours' } });
    const canceled = await call('POST', `/sd/text-to-image/${waiting}/cancel`);
    expect([renamed.body, canceled.body]).toMatchObject([{ title: 'ours' }, { status: 'canceled' }]);
    // With its picture, which both Styles show.
    await drawTask(api, prompt);
    for (const path of [
      `/sd/text-to-image/${waiting}`,
      `/finetunes/${finetune.id}`,
      `/prompts/collections/${collection.id}`,
    ])
      expect((await call('DELETE', path)).status).toBe(200);
    expect([await storedOf(alice), await storedOf(ally)]).toEqual([before, allied]);
  });

  it('have limits of their own', async () => {
    const narrow = await sibling({ maxQueued: 1 });
    await draw(alice);
    const [first, second] = [await draw(narrow), await draw(narrow)];
    expect([first, second]).toEqual([expect.any(String), undefined]);
  });

  it('keep what a revoked one made', async () => {
    const leaving = await sibling();
    const { id } = await makeFinetune(api, leaving);
    await api.dataSource.manager.update(ApiKey, { id: leaving.id }, { revokedAt: new Date() });
    expect((await call('GET', `/finetunes/${id}`)).status).toBe(200);
  });

  it("are refused another account's Fine-Tune, Style and picture as unknown", async () => {
    const { body: upload } = await call<{ url: string }>('GET', `/uploads/${hers.upload}`);
    const { id: own } = await makeFinetune(api, stranger);
    const answers = [
      await call('GET', `/finetunes/${hers.finetune}`, { key: stranger }),
      await call('POST', `/finetunes/${own}/styles`, { key: stranger, body: [{ id: hers.style }] }),
      await call('POST', '/sd/text-to-image', { key: stranger, body: { prompt: 'x', image: upload.url } }),
      await call('POST', '/sd/text-to-image', {
        key: stranger,
        body: { prompt: 'x', finetunes: [{ id: await makeTuned(api, alice) }] },
      }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([404, 422, 422, 422]);
  });

  it('share what an older version writes, which knows no accounts', async () => {
    const id = newIdentifier();
    await api.dataSource.query(
      `INSERT INTO finetunes (id, owner_id, name, token, model, status, created_at)
       VALUES ($1, $2, 'robot', 'zwx', 'shapes', 'registered', now())`,
      [id, ally.id],
    );
    expect((await call('GET', `/finetunes/${id}`, { key: alice })).status).toBe(200);
    const [lone] = await api.dataSource.query<{ account_id: string }[]>(
      `INSERT INTO api_keys (id, name, prefix, secret_hash, webhook_secret)
       VALUES ($1, 'old', $2, '', '') RETURNING account_id`,
      [newIdentifier(), newIdentifier().slice(0, 12)],
    );
    expect(lone.account_id).toHaveLength(24);
  });

  it('have the records of before there were accounts', async () => {
    const task = newTask(alice.id);
    await api.dataSource.manager.insert(Task, { ...task, status: 'succeeded', cost: 1 });
    await api.dataSource.query('UPDATE tasks SET account_id = NULL WHERE id = $1', [task.id]);
    const runner = api.dataSource.createQueryRunner();
    await new AccountsOfRecords1796270100000().up(runner);
    await runner.release();
    expect((await api.dataSource.manager.findOneByOrFail(Task, { id: task.id })).accountId).toBe(alice.id);
  });
});

describe('An account', () => {
  const api = ofSuite(startTestApi);
  const operator = ofSuite(() => api.createKey({ scopes: ['admin'] }));

  type Made = Named & { account: string | null; token: string; code?: string };
  const make = (body: object) =>
    api.request<Made>('POST', '/v1/keys', { key: operator, body: { name: 'web', ...body } });
  const rename = (id: string, account: string) =>
    api.request<Made>('PATCH', `/v1/keys/${id}`, { key: operator, body: { account } });
  const accountOf = async ({ body: { id } }: { body: Named }) =>
    (await api.dataSource.manager.findOneByOrFail(ApiKey, { id })).accountId;

  it('begins with the first key that names it, however many do at the same time', async () => {
    const made = await Promise.all(Array.from({ length: 6 }, () => make({ account: 'shop' })));
    expect(made.map(({ body }) => body.account)).toEqual(Array(6).fill('shop'));
    expect(new Set(await Promise.all(made.map(accountOf))).size).toBe(1);
    const other = await make({ account: 'another' });
    expect(await accountOf(other)).toBe(other.body.id);
  });

  it("is a key's own where none is named, and can be named once", async () => {
    const lone = await make({});
    expect([lone.body.account, await accountOf(lone)]).toEqual([null, lone.body.id]);
    expect((await rename(lone.body.id, 'studio')).body.account).toBe('studio');
    expect(await accountOf(await make({ account: 'studio' }))).toBe(lone.body.id);
    const refused = [await rename(lone.body.id, 'atelier'), await rename((await make({})).body.id, 'studio')];
    expect(refused.map(({ status, body }) => [status, body.code])).toEqual(Array(2).fill([409, 'AccountConflict']));
  });

  it('has sandbox keys alone or none', async () => {
    const made = [];
    for (const [account, sandbox] of [
      ['real', false],
      ['real', true],
      ['tests', true],
      ['tests', true],
      ['tests', false],
    ] as const)
      made.push((await make({ account, sandbox })).status);
    expect(made).toEqual([201, 409, 201, 201, 409]);
  });

  it('is shown in the list of keys', async () => {
    const { body } = await make({ account: 'listed' });
    const { body: keys } = await api.request<Made[]>('GET', '/v1/keys', { key: operator });
    expect(keys.find(({ id }) => id === body.id)?.account).toBe('listed');
  });

  it.each(['', '   ', 'a\u0000b', 'x'.repeat(201), 7])('is not named %j', async (account) => {
    expect((await make({ account })).status).toBe(400);
  });
});
