import type { TestApi, TestKey } from '../support/api';
import { startTestApi } from '../support/api';
import type { ProblemJson } from '../support/factories';
import { makeFinetune } from '../support/factories';

const path = '/v1/sd/text-to-image';

describe('Answers', () => {
  let api: TestApi;
  let key: TestKey;

  beforeAll(async () => {
    api = await startTestApi();
    key = await api.createKey();
  });
  afterAll(() => api.close());

  it('name the Location of whatever was made or has changed its state', async () => {
    const post = async (to: string, body: object) => {
      const reply = await api.request<{ id: string }>('POST', to, { key, body });
      return [reply.headers.get('location'), reply.body.id];
    };
    const base = api.config.publicUrl;
    const [generation, id] = await post(path, { prompt: 'x' });
    expect(generation).toBe(`${base}${path}/${id}`);
    const [same, sameId] = await post('/v1/finetunes', { prompt: 'x' });
    expect(same).toBe(`${base}${path}/${sameId}`);
    const [finetune, finetuneId] = await post('/v1/finetunes', { name: 'robot' });
    expect(finetune).toBe(`${base}/v1/finetunes/${finetuneId}`);
    const [collection, collectionId] = await post('/v1/prompts/collections', { name: 'x', styles: [] });
    expect(collection).toBe(`${base}/v1/prompts/collections/${collectionId}`);
    const canceled = await api.request('POST', `${path}/${id}/cancel`, { key });
    expect(canceled.headers.get('location')).toBe(generation);
  });

  it('say which methods a path allows', async () => {
    const { status, headers, body } = await api.request<ProblemJson>('PUT', path, { key, body: {} });
    expect([status, body.code, headers.get('allow')]).toEqual([405, 'MethodNotAllowed', 'GET, HEAD, POST']);
  });

  it.each([
    ['a zip archive', 'PK\u0003\u0004 and so on', /zip archive/],
    ['a picture', Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), /PNG picture/],
    ['a text', 'no weights at all', /not a safetensors file/],
  ])('say of %s that it is no weights', async (_, raw, detail) => {
    const { id } = await makeFinetune(api, key);
    const headers = { 'content-type': 'application/octet-stream' };
    const reply = await api.request<ProblemJson>('PUT', `/v1/finetunes/${id}/weights`, { key, raw, headers });
    expect([reply.status, reply.body.code]).toEqual([422, 'WeightsMalformed']);
    expect(reply.body.detail).toMatch(detail);
  });
});
