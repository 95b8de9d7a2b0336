import { Webhook } from 'standardwebhooks';
import type { TestApi, TestKey } from '../support/api';
import { startTestApi } from '../support/api';
import type { ProblemJson } from '../support/factories';
import { drawTask, makeFinetune, makePrompts } from '../support/factories';
import { receiversOfSuite } from '../support/receiver';

describe('The webhook of a Prompt', () => {
  let api: TestApi;
  let key: TestKey;
  let finetuneId: string;
  const receiver = receiversOfSuite();

  beforeAll(async () => {
    api = await startTestApi();
  });
  beforeEach(async () => {
    key = await api.createKey();
    finetuneId = (await makeFinetune(api, key)).id;
  });
  afterAll(() => api.close());

  const pathOf = (id: string) => `/v1/finetunes/${finetuneId}/prompts/${id}`;

  it('gets the Prompt as GET returns it, signed, when it has been drawn', async () => {
    const { url, next } = await receiver();
    const [told, silent] = await makePrompts(api, key, finetuneId, [
      { prompt: 'a robot', webhook: url, metadata: { a: 1 } },
      { prompt: 'a robot' },
    ]);
    for (const prompt of [told, silent]) expect(Object.keys(prompt)).not.toContain('webhook');
    await drawTask(api, silent.id);
    await drawTask(api, told.id);
    const { headers, body } = await next(1);
    const { text } = await api.request('GET', pathOf(told.id), { key });
    expect(body).toBe(text);
    expect(Object.keys(JSON.parse(body) as object)).not.toContain('webhook');
    new Webhook(key.webhookSecret).verify(body, headers as Record<string, string>);
  });

  it('gets a Prompt that a Style has made', async () => {
    const { url, next } = await receiver();
    const [source] = await makePrompts(api, key, finetuneId, [{ prompt: 'a robot' }]);
    const collection = await api.request<{ id: string }>('POST', '/v1/prompts/collections', {
      key,
      body: { name: 'robots', styles: [{ id: source.id, name: 'a robot' }] },
    });
    const { status, body } = await api.request<object[]>('POST', `/v1/finetunes/${finetuneId}/styles`, {
      key,
      body: [{ id: collection.body.id, webhook: url }],
    });
    expect([status, body.map((made) => 'webhook' in made)]).toEqual([201, [false]]);
    const [{ id }] = body as { id: string }[];
    await drawTask(api, id);
    expect(JSON.parse((await next(1)).body)).toMatchObject({ id });
  });

  it('gets nothing of a Prompt that was deleted', async () => {
    const { url, next, received } = await receiver();
    const [deleted, drawn] = await makePrompts(api, key, finetuneId, [
      { prompt: 'a robot', webhook: url },
      { prompt: 'a robot', webhook: url },
    ]);
    await api.request('DELETE', pathOf(deleted.id), { key });
    await drawTask(api, drawn.id);
    expect(JSON.parse((await next(1)).body)).toMatchObject({ id: drawn.id });
    expect(received).toHaveLength(1);
    const [{ count }] = await api.dataSource.query<{ count: string }[]>(
      'SELECT count(*) FROM webhook_deliveries WHERE owner_id = $1',
      [key.id],
    );
    expect(Number(count)).toBe(1);
    await api.request('DELETE', pathOf(drawn.id), { key });
    const rows: unknown[] = await api.dataSource.query('SELECT FROM webhook_deliveries WHERE owner_id = $1', [key.id]);
    expect(rows).toHaveLength(0);
  });

  it('is refused with its place where it is a private address', async () => {
    const strict = await startTestApi({ WEBHOOK_ALLOW_PRIVATE: 'false' });
    try {
      const owner = await strict.createKey();
      const { id } = await makeFinetune(strict, owner);
      const webhook = 'http://10.0.0.1/';
      for (const [path, element] of [
        ['prompts', { prompt: 'a robot' }],
        ['styles', { id }],
      ] as const) {
        const { status, body } = await strict.request<ProblemJson>('POST', `/v1/finetunes/${id}/${path}`, {
          key: owner,
          body: [element, { ...element, webhook }],
        });
        expect([status, body.code, body.errors?.[0].pointer]).toEqual([422, 'WebhookAddressRefused', '/1/webhook']);
      }
    } finally {
      await strict.close();
    }
  });
});
