import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Finetune, newIdentifier, Style, Task } from '@app/domain';
import { startTestApi, type TestKey } from '../support/api';
import { bundledDefaults } from '../support/bundled-defaults';
import { type FinetuneJson, makeFinetune, makePrompts, type ProblemJson, type PromptJson } from '../support/factories';
import { drawingOf } from '../support/drawing-rows';
import { ofSuite, ofTest } from '../support/of-suite';

interface IdJson {
  id: string;
}
/** A safetensors file with one tensor, as diffusers writes an embedding. */
function embedding(token: string, vectors: number, width: number): Buffer {
  const bytes = vectors * width * 4;
  const header = Buffer.from(
    JSON.stringify({ [token]: { dtype: 'F32', shape: [vectors, width], data_offsets: [0, bytes] } }),
  );
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  return Buffer.concat([length, header, Buffer.alloc(bytes)]);
}

const api = ofSuite(startTestApi);

describe('Styles applied to a Fine-Tune', () => {
  const key = ofTest(() => api.createKey());
  let path: string;
  let targetId: string;

  beforeEach(async () => {
    targetId = (await makeFinetune(api, key, { name: 'star', token: 'qrs', model: 'shapes' })).id;
    path = `/v1/finetunes/${targetId}`;
  });
  const apply = (body: unknown) => api.request<PromptJson[] & ProblemJson>('POST', `${path}/styles`, { key, body });
  const taskOf = (id: string) => drawingOf(api.dataSource.manager, id);

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
    const empty = await api.request<IdJson>('POST', '/v1/prompts/collections', {
      key,
      body: { name: 'empty', styles: [] },
    });
    const { body } = await apply([
      { id: styles[2], seed: 1 },
      { id: empty.body.id },
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

  it('applies a public Style, and its Collection', async () => {
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
    const made = (await apply([{ id }, { id: collection.id }])).body;
    expect(made).toHaveLength(2);
    const { cfg, steps } = bundledDefaults;
    for (const prompt of made)
      expect(await taskOf(prompt.id)).toMatchObject({ prompt: 'qrs star in {brackets}', cfg, steps });
  });

  it("names each id that is neither a Style nor a Collection, including another caller's", async () => {
    const own = await makeCollection(key, [{ prompt: 'a robot' }]);
    const theirs = await makeCollection(await api.createKey(), [{ prompt: 'a robot' }]);
    const ids = [own.id, newIdentifier(), theirs.id, 'x', ...theirs.styles];
    const { status, body } = await apply(ids.map((each) => ({ id: each })));
    expect([status, body.code, body.errors?.map(({ pointer }) => pointer)]).toEqual([
      422,
      'StyleNotFound',
      [1, 2, 3, 4].map((index) => `/${index}/id`),
    ]);
  });

  it('rejects a Style whose text would be longer than a Prompt may be', async () => {
    const { styles } = await makeCollection(key, [{ prompt: 'robot' }, { prompt: `robot${' '.repeat(31_993)}x` }]);
    const { status, body } = await apply(styles.map((id) => ({ id })));
    expect([status, body.code, body.errors?.map(({ pointer }) => pointer)]).toEqual([422, 'PromptTooLong', ['/1/id']]);
    expect((await apply([{ id: styles[0] }])).status).toBe(201);
  });

  it('rejects texts that would be more than a million characters together', async () => {
    const prompt = `robot${' '.repeat(19_994)}x`;
    const { id } = await makeCollection(
      key,
      Array.from({ length: 26 }, (_, index) => ({ prompt, ...(index > 0 && { negative_prompt: 'y' }) })),
    );
    const { status, body } = await apply([{ id }, { id }]);
    expect([status, body.code]).toEqual([422, 'TooManyPrompts']);
    expect(body.detail).toMatch(/may have 1000000 characters together; these would have 10\d{5}\. Apply fewer/);
    expect((await apply([{ id }])).status).toBe(201);
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
    const { id, styles } = await makeCollection(
      key,
      Array.from({ length: 11 }, () => ({ prompt: 'robot' })),
    );
    const { status, body } = await apply(Array.from({ length: 91 }, () => ({ id })));
    expect([status, body.code]).toEqual([422, 'TooManyPrompts']);
    const most = await apply([...Array<string>(90).fill(id), ...styles.slice(1)].map((each) => ({ id: each })));
    expect([most.status, most.body.length]).toEqual([201, 1000]);
  });
});

describe('The length of a prompt', () => {
  const key = ofSuite(() => api.createKey());
  let width: number;

  beforeAll(async () => {
    const config = await readFile(join(api.config.modelsDir, 'shapes', 'text_encoder', 'config.json'), 'utf8');
    width = (JSON.parse(config) as { hidden_size: number }).hidden_size;
  });

  const post = (path: string, body: unknown) => api.request<ProblemJson & { id: string }>('POST', path, { key, body });
  const chunksOf = async (id: string) => (await drawingOf(api.dataSource.manager, id)).promptChunks;
  const taught = async (vectors: number): Promise<FinetuneJson> => {
    const finetune = await makeFinetune(api, key);
    const raw = embedding('zwx', vectors, width);
    const headers = { 'content-type': 'application/octet-stream' };
    const reply = await api.request('PUT', `/v1/finetunes/${finetune.id}/weights`, { key, raw, headers });
    if (reply.status !== 200) throw new Error(reply.text);
    return finetune;
  };

  // The bundled vocabulary has no Chinese: each of these characters is three bytes, and three tokens.
  const long = (characters: number) => '机'.repeat(characters);

  it.each([
    ['a short one', { prompt: 'a red circle' }, 1],
    ['one of more bytes than a chunk has tokens', { prompt: long(26) }, 2],
    ['the longest', { prompt: long(800) }, 32],
    ['one with BREAK', { prompt: 'a BREAK b', prompt_weighting: true }, 2],
    ['one with BREAK as a word', { prompt: 'a BREAK b' }, 1],
  ])('is counted when a Generation is made: %s', async (_, body, chunks) => {
    const reply = await post('/v1/sd/text-to-image', body);
    expect([reply.status, await chunksOf(reply.body.id)]).toEqual([201, chunks]);
  });

  it('is that of the longer of prompt and negative prompt, if the negative prompt is used', async () => {
    const guided = await post('/v1/sd/text-to-image', { prompt: 'a star', negative_prompt: long(100), cfg: 2 });
    const plain = await post('/v1/sd/text-to-image', { prompt: 'a star', negative_prompt: long(100), cfg: 1 });
    expect([await chunksOf(guided.body.id), await chunksOf(plain.body.id)]).toEqual([4, 1]);
  });

  it.each(['prompt', 'negative_prompt'])('is rejected beyond 32 chunks: %s', async (field) => {
    const { status, body } = await post('/v1/sd/text-to-image', { prompt: 'a star', [field]: long(801) });
    expect([status, body.code, body.errors]).toEqual([
      422,
      'PromptTooLong',
      [{ pointer: `/${field}`, message: 'would take 33 chunks of tokens; at most 32 can be drawn' }],
    ]);
  });

  it('is counted with the vectors of an embedding', async () => {
    const { id } = await taught(75);
    expect((await api.dataSource.manager.findOneByOrFail(Finetune, { id })).weightsVectors).toBe(75);
    const [prompt] = await makePrompts(api, key, id, [{ prompt: 'zwx robot' }]);
    expect(await chunksOf(prompt.id)).toBe(2);
    const { status, body } = await post(`/v1/finetunes/${id}/prompts`, [
      { prompt: 'a robot' },
      { prompt: `${'zwx '.repeat(990 / 2)}robot` },
    ]);
    expect([status, body.code, body.errors?.map(({ pointer }) => pointer)]).toEqual([
      422,
      'PromptTooLong',
      ['/1/prompt'],
    ]);
  });

  it('is counted for Styles; nothing is made if one is too long', async () => {
    const plain = await makeFinetune(api, key);
    const [prompt] = await makePrompts(api, key, plain.id, [{ prompt: 'robot '.repeat(40) }]);
    const styles = [{ id: prompt.id, name: 'Many' }];
    const collection = await post('/v1/prompts/collections', { name: 'Crowds', styles });
    const { id } = await taught(75);
    const before = await api.dataSource.manager.count(Task);
    const { status, body } = await post(`/v1/finetunes/${id}/styles`, [{ id: collection.body.id }]);
    expect([status, body.code, body.errors?.map(({ pointer }) => pointer)]).toEqual([422, 'PromptTooLong', ['/0/id']]);
    expect(await api.dataSource.manager.count(Task)).toBe(before);
  });

  it('does not load ONNX Runtime into the api', () => {
    const program = `require('reflect-metadata'); require('./dist/apps/api/src/create-api.js');
      process.stdout.write(String(Object.keys(require.cache).filter((file) => file.includes('onnxruntime')).length))`;
    expect(execFileSync(process.execPath, ['-e', program], { encoding: 'utf8' })).toBe('0');
  });
});
