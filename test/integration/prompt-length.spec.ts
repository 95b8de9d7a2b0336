import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Finetune, ImageTask } from '@app/domain';
import type { TestApi, TestKey } from '../support/api';
import { startTestApi } from '../support/api';
import type { FinetuneJson, ProblemJson } from '../support/factories';
import { makeFinetune, makePrompts } from '../support/factories';

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

describe('The length of a prompt', () => {
  let api: TestApi;
  let key: TestKey;
  let width: number;

  beforeAll(async () => {
    api = await startTestApi();
    key = await api.createKey();
    const config = await readFile(join(api.config.modelsDir, 'shapes', 'text_encoder', 'config.json'), 'utf8');
    width = (JSON.parse(config) as { hidden_size: number }).hidden_size;
  });

  afterAll(() => api.close());

  const post = (path: string, body: unknown) => api.request<ProblemJson & { id: string }>('POST', path, { key, body });
  const chunksOf = async (id: string) => (await api.dataSource.manager.findOneByOrFail(ImageTask, { id })).promptChunks;
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
    ['a short one', 'a red circle', 1],
    ['one of more bytes than a chunk has tokens', long(26), 2],
    ['the longest', long(800), 32],
  ])('is counted when a Generation is made: %s', async (_, prompt, chunks) => {
    const reply = await post('/v1/sd/text-to-image', { prompt });
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
    const before = await api.dataSource.manager.count(ImageTask);
    const { status, body } = await post(`/v1/finetunes/${id}/styles`, [{ id: collection.body.id }]);
    expect([status, body.code, body.errors?.map(({ pointer }) => pointer)]).toEqual([422, 'PromptTooLong', ['/0/id']]);
    expect(await api.dataSource.manager.count(ImageTask)).toBe(before);
  });

  it('does not load ONNX Runtime into the api', () => {
    const program = `require('reflect-metadata'); require('./dist/apps/api/src/create-api.js');
      process.stdout.write(String(Object.keys(require.cache).filter((file) => file.includes('onnxruntime')).length))`;
    expect(execFileSync(process.execPath, ['-e', program], { encoding: 'utf8' })).toBe('0');
  });
});
