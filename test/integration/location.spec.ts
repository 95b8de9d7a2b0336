import type { TestApi, TestKey } from '../support/api';
import { startTestApi } from '../support/api';

const path = '/v1/sd/text-to-image';

describe('Location', () => {
  let api: TestApi;
  let key: TestKey;

  beforeAll(async () => {
    api = await startTestApi();
    key = await api.createKey();
  });
  afterAll(() => api.close());

  it('is in the answer to every creation, and to a change of state', async () => {
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
});
