import { ImageTask, newIdentifier, Style } from '@app/domain';
import type { TestApi, TestKey } from '../support/api';
import { startTestApi } from '../support/api';
import { bundledDefaults } from '../support/bundled-defaults';
import type { ProblemJson, PromptJson } from '../support/factories';
import { makeFinetune, makePrompts } from '../support/factories';

interface IdJson {
  id: string;
}

describe('Styles applied to a Fine-Tune', () => {
  let api: TestApi;
  let key: TestKey;
  let path: string;
  let targetId: string;

  beforeAll(async () => {
    api = await startTestApi();
  });
  beforeEach(async () => {
    key = await api.createKey();
    targetId = (await makeFinetune(api, key, { name: 'star', token: 'qrs', model: 'shapes' })).id;
    path = `/v1/finetunes/${targetId}`;
  });
  afterAll(() => api.close());

  const apply = (body: unknown) => api.request<PromptJson[] & ProblemJson>('POST', `${path}/styles`, { key, body });
  const taskOf = (id: string) => api.dataSource.manager.findOneByOrFail(ImageTask, { id });

  /** Makes a Collection whose Styles come from Prompts with these texts. @returns the ids of its Styles in order. */
  async function makeCollection(owner: TestKey, prompts: object[]): Promise<{ id: string; styles: string[] }> {
    const source = await makeFinetune(api, owner);
    const made = await makePrompts(api, owner, source.id, prompts);
    const { body } = await api.request<IdJson>('POST', '/v1/prompts/collections', {
      key: owner,
      body: { name: 'mine', styles: made.map(({ id }, index) => ({ id, name: `style ${index}` })) },
    });
    const rows = await api.dataSource.manager.find(Style, { where: { collectionId: body.id }, order: { seq: 'ASC' } });
    return { id: body.id, styles: rows.map(({ id }) => id) };
  }

  it('makes one Prompt per Style, with its text and controls', async () => {
    const { styles } = await makeCollection(key, [
      { prompt: 'a robot at sea', negative_prompt: 'rain', cfg: 3.5, steps: 9 },
    ]);
    const { status, body } = await apply([{ id: styles[0] }]);
    expect(status).toBe(201);
    const [{ id, created_at, ...rest }] = body;
    expect(rest).toEqual({ error_message: null, images: [] });
    expect(created_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    const { body: whole } = await api.request<PromptJson>('GET', `${path}/prompts/${id}`, { key });
    expect(whole).toMatchObject({
      prompt: 'a qrs star at sea',
      negative_prompt: 'rain',
      cfg: 3.5,
      steps: 9,
      high_resolution: false,
      aspect_ratio: 'square',
      metadata: null,
      created_at,
    });
    expect(await taskOf(id)).toMatchObject({
      kind: 'prompt',
      finetuneId: targetId,
      model: 'shapes',
      prompt: 'a qrs star at sea',
    });
  });

  it('returns nothing for null, which means that it was not sent', async () => {
    const { styles } = await makeCollection(key, [{ prompt: 'a robot' }]);
    const [prompt] = (await apply([{ id: styles[0], seed: null, metadata: null }])).body;
    expect(Object.keys(prompt).sort()).toEqual(['created_at', 'error_message', 'id', 'images']);
  });

  it.each([
    ['nothing', {}],
    ['a seed', { seed: 0 }],
    ['a flag', { high_resolution: false }],
    ['a word', { aspect_ratio: 'portrait' }],
    ['an array', { aspect_ratio: ['landscape'] }],

    ['all', { seed: 7, high_resolution: true, aspect_ratio: ['square'], metadata: { a: [1] } }],
  ])('returns what was sent, in the same form: %s', async (_, sent) => {
    const { styles } = await makeCollection(key, [{ prompt: 'a robot' }]);
    const [{ id, images: _images, error_message: _error, created_at: _at, ...echo }] = (
      await apply([{ id: styles[0], ...sent }])
    ).body;
    expect(echo).toEqual(sent);
    const task = await taskOf(id);
    if ('seed' in sent) expect(task.seed).toBe(sent.seed);
    if ('aspect_ratio' in sent) expect(task.aspectRatio).toBe([sent.aspect_ratio].flat()[0]);
  });

  it('applies a Collection between single Styles, in the order of the input', async () => {
    const { id, styles } = await makeCollection(
      key,
      [1, 2, 3].map((i) => ({ prompt: `robot ${i}` })),
    );
    const { body } = await apply([
      { id: styles[2], seed: 1 },
      { id, seed: 2 },
      { id: styles[0], seed: 3 },
    ]);
    const list = await api.request<PromptJson[]>('GET', `${path}/prompts`, { key });
    const texts = new Map(list.body.map((prompt) => [prompt.id, prompt.prompt]));
    expect(body.map((prompt) => [texts.get(prompt.id), prompt.seed])).toEqual([
      ['qrs star 3', 1],
      ['qrs star 1', 2],
      ['qrs star 2', 2],
      ['qrs star 3', 2],
      ['qrs star 1', 3],
    ]);
    expect(list.body.map((prompt) => prompt.id)).toEqual(body.map((prompt) => prompt.id).reverse());
  });

  it('makes no Prompt from an empty Collection', async () => {
    const { id } = await makeCollection(key, [{ prompt: 'robot' }]);
    await api.dataSource.manager.delete(Style, { collectionId: id });
    expect(await apply([{ id }])).toMatchObject({ status: 201, body: [] });
  });

  it('applies a public Style', async () => {
    const id = newIdentifier();
    const collection = { id: newIdentifier(), ownerId: null, name: 'public', createdAt: new Date() };
    await api.dataSource.manager.insert('collections', collection);
    await api.dataSource.manager.insert(Style, {
      id,
      ownerId: null,
      collectionId: collection.id,
      name: 'one',
      template: '{finetune} in {{brackets}}',
      createdAt: new Date(),
    });
    const [made] = (await apply([{ id }])).body;
    const { cfg, steps } = bundledDefaults;
    expect(await taskOf(made.id)).toMatchObject({ prompt: 'qrs star in {brackets}', cfg, steps });
  });

  it('names each id that is not a Style of the caller and makes nothing', async () => {
    const stranger = await api.createKey();
    const theirs = await makeCollection(stranger, [{ prompt: 'robot' }]);
    const { styles } = await makeCollection(key, [{ prompt: 'robot' }]);
    const bodies = [theirs.id, theirs.styles[0], 'A'.repeat(24), 'x'].map((id) => ({ id }));
    const { status, body } = await apply([{ id: styles[0] }, ...bodies]);
    expect([status, body.code]).toEqual([422, 'StyleNotFound']);
    expect(body.errors?.map(({ pointer }) => pointer)).toEqual(['/1/id', '/2/id', '/3/id', '/4/id']);
    expect((await api.request('GET', `${path}/prompts`, { key })).body).toEqual([]);
  });

  it('rejects a Style whose text would be longer than a Prompt may be', async () => {
    const { styles } = await makeCollection(key, [{ prompt: 'robot' }, { prompt: 'robot '.repeat(333) }]);
    const { status, body } = await apply(styles.map((id) => ({ id })));
    expect([status, body.code, body.errors?.map(({ pointer }) => pointer)]).toEqual([422, 'PromptTooLong', ['/1/id']]);
    expect((await apply([{ id: styles[0] }])).status).toBe(201);
  });

  it('rejects metadata that would be a million bytes in all its Prompts together', async () => {
    const { id } = await makeCollection(
      key,
      Array.from({ length: 70 }, () => ({ prompt: 'robot' })),
    );
    const { status, body } = await apply([{ id, metadata: { a: 'x'.repeat(15_000) } }]);
    expect([status, body.code]).toEqual([422, 'TooManyPrompts']);
    expect(body.detail).toBe(
      'The Prompts of one request may carry at most 1000000 bytes of metadata together; these would carry 1050560.',
    );
    expect((await apply([{ id, metadata: { a: 'x'.repeat(10_000) } }])).status).toBe(201);
  });

  it('rejects more than 1000 Prompts at once', async () => {
    const { id } = await makeCollection(
      key,
      Array.from({ length: 11 }, () => ({ prompt: 'robot' })),
    );
    const { status, body } = await apply(Array.from({ length: 91 }, () => ({ id })));
    expect([status, body.code]).toEqual([422, 'TooManyPrompts']);
    const most = await apply(Array.from({ length: 90 }, () => ({ id })));
    expect([most.status, most.body.length]).toEqual([201, 990]);
  });

  it.each([
    ['no id', [{ seed: 1 }], '/0/id'],
    ['an id that is a number', [{ id: 1 }], '/0/id'],
    ['a seed that is a string', [{ id: 'x', seed: '1' }], '/0/seed'],
    ['two shapes', [{ id: 'x', aspect_ratio: ['square', 'portrait'] }], '/0/aspect_ratio'],
    ['an array in an array', [{ id: 'x', aspect_ratio: [['square']] }], '/0/aspect_ratio'],
    ['a prompt', [{ id: 'x', prompt: 'star' }], '/0/prompt'],
    ['no array', { id: 'x' }, ''],
  ])('rejects %s', async (_, sent, pointer) => {
    const { status, body } = await apply(sent);
    expect([status, body.code, body.errors?.map((error) => error.pointer)]).toEqual([
      400,
      'ValidationFailed',
      [pointer],
    ]);
  });
});
