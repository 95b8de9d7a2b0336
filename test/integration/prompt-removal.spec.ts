import { FinetunePrompt, ImageTask } from '@app/domain';
import { ImageTaskLifeCycle, stopChannel } from '@app/tasks';
import { Client } from 'pg';
import type { TestApi, TestKey } from '../support/api';
import { startTestApi } from '../support/api';
import type { PromptJson } from '../support/factories';
import { drawTask, makeFinetune, makePrompts, storedKeys } from '../support/factories';

describe('The removal of a Prompt', () => {
  let api: TestApi;
  let key: TestKey;
  let finetuneId: string;
  let path: string;

  beforeAll(async () => {
    api = await startTestApi();
  });
  beforeEach(async () => {
    key = await api.createKey();
    finetuneId = (await makeFinetune(api, key)).id;
    path = `/v1/finetunes/${finetuneId}/prompts`;
  });
  afterAll(() => api.close());

  const get = (id: string) => api.request<PromptJson>('GET', `${path}/${id}`, { key });
  const countPrompts = () => api.dataSource.manager.countBy(FinetunePrompt, { ownerId: key.id });

  it('cancels what is being drawn and removes row, task and pictures', async () => {
    const filesBefore = await storedKeys(api);
    const [drawn, drawing] = await makePrompts(api, key, finetuneId, [{ prompt: 'robot' }, { prompt: 'robot' }]);
    await drawTask(api, drawn.id);
    const [url] = (await get(drawn.id)).body.images;
    const lifeCycle = api.app.get(ImageTaskLifeCycle);
    const claim = await lifeCycle.claim(drawing.id);
    const stopped = await listen(api, stopChannel);
    for (const { id } of [drawn, drawing]) {
      const { status, body } = await api.request('DELETE', `${path}/${id}`, { key });
      expect([status, body]).toEqual([200, { delete: `Prompt ${id} has been deleted successfully.` }]);
      expect((await get(id)).status).toBe(404);
    }
    await stopped(drawing.id);
    if (claim.kind !== 'claimed') throw new Error('It was not claimed.');
    expect(await lifeCycle.settle(claim.task, { status: 'succeeded' })).toBe(false);
    expect((await api.request('GET', new URL(url).pathname)).status).toBe(404);
    expect([await countPrompts(), await storedKeys(api)]).toEqual([0, filesBefore]);
  });

  it('stops the worker when the whole Fine-Tune is deleted', async () => {
    const [{ id }] = await makePrompts(api, key, finetuneId);
    await api.app.get(ImageTaskLifeCycle).claim(id);
    const stopped = await listen(api, stopChannel);
    await api.request('DELETE', `/v1/finetunes/${finetuneId}`, { key });
    await stopped(id);
  });

  it('leaves nothing behind when the Fine-Tune is deleted at the same time', async () => {
    const replies = await Promise.all([
      ...Array.from({ length: 4 }, () => api.request('POST', path, { key, body: [{ prompt: 'robot' }] })),
      api.request('DELETE', `/v1/finetunes/${finetuneId}`, { key }),
    ]);
    for (const { status } of replies.slice(0, 4)) expect([201, 404]).toContain(status);
    expect(replies[4].status).toBe(200);
    expect([await countPrompts(), await api.dataSource.manager.countBy(ImageTask, { ownerId: key.id })]).toEqual([
      0, 0,
    ]);
  });
});

/** Listens on a PostgreSQL channel; the returned function waits for one payload and stops listening. */
async function listen(api: TestApi, channel: string): Promise<(payload: string) => Promise<void>> {
  const client = new Client({ connectionString: api.config.databaseUrl });
  await client.connect();
  await client.query(`LISTEN ${channel}`);
  const heard = new Set<string>();
  let wake = () => undefined as void;
  client.on('notification', ({ payload }) => {
    heard.add(payload ?? '');
    wake();
  });
  return async (payload) => {
    while (!heard.has(payload)) await new Promise<void>((resolve) => (wake = resolve));
    await client.end();
  };
}
