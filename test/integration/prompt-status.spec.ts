import { ImageTaskLifeCycle, progressChannel } from '@app/tasks';
import type { TestApi, TestKey } from '../support/api';
import { startTestApi } from '../support/api';
import { openEvents } from '../support/event-source';
import { drawTask, failTask, makeFinetune, makePrompts } from '../support/factories';
import { until } from '../support/until';

interface StatusJson {
  status: string;
  queue_position: number | null;
  step: number | null;
  [field: string]: unknown;
}

describe('The status of a Prompt', () => {
  let api: TestApi;
  let key: TestKey;
  let finetuneId: string;

  beforeAll(async () => {
    api = await startTestApi();
  });
  beforeEach(async () => {
    key = await api.createKey();
    finetuneId = (await makeFinetune(api, key)).id;
  });
  afterAll(() => api.close());

  const pathOf = (id: string) => `/v1/finetunes/${finetuneId}/prompts/${id}`;
  const statusOf = async (id: string) => (await api.request<StatusJson>('GET', `${pathOf(id)}/status`, { key })).body;

  it('has its place in the queue, then its step, then what drew it', async () => {
    const [first, second] = await makePrompts(api, key, finetuneId, [
      { prompt: 'a robot', steps: 4 },
      { prompt: 'a robot', steps: 4 },
    ]);
    const [before, after] = [await statusOf(first.id), await statusOf(second.id)];
    expect(after).toEqual({
      status: 'queued',
      queue_position: after.queue_position,
      step: 0,
      steps: 4,
      served_by: null,
      upscaler: null,
      prompt_chunks: 1,
      started_at: second.created_at,
      completed_at: null,
    });
    // Both were accepted in the same moment, so either may be the next.
    expect([before.queue_position, after.queue_position].sort()).toEqual([0, 1]);
    const lifeCycle = api.app.get(ImageTaskLifeCycle);
    const claim = await lifeCycle.claim(first.id);
    if (claim.kind !== 'claimed') throw new Error(`The task is ${claim.kind}.`);
    const step = { id: first.id, attempt: 1, step: 3, total: 4 };
    await lifeCycle.drawingStarted(claim.task, { servedBy: 'shapes@0123456789ab' });
    await api.dataSource.query('SELECT pg_notify($1, $2)', [progressChannel, JSON.stringify(step)]);
    await until(async () => (await statusOf(first.id)).step === 3, 'the step is known');
    expect(await statusOf(first.id)).toMatchObject({
      status: 'processing',
      queue_position: null,
      served_by: 'shapes@0123456789ab',
    });
    const served = { servedBy: 'shapes@0123456789ab', promptChunks: 2 };
    await lifeCycle.settle(claim.task, { status: 'succeeded', images: [], served });
    const { completed_at, ...ended } = await statusOf(first.id);
    expect(ended).toMatchObject({ status: 'succeeded', queue_position: null, step: 4, prompt_chunks: 2 });
    expect(completed_at).toMatch(/Z$/);
    await drawTask(api, second.id);
  });

  it('is in the last event of its stream, together with the Prompt', async () => {
    const [{ id }] = await makePrompts(api, key, finetuneId);
    await failTask(api, id, 'No more paint.');
    const stream = await openEvents(`${api.baseUrl}${pathOf(id)}/events`, key.token);
    const { event, data } = (await stream.next())!;
    const prompt = (await api.request('GET', pathOf(id), { key })).body;
    const { queue_position: _position, step: _step, ...status } = await statusOf(id);
    expect([event, data]).toEqual(['terminated', { ...prompt, ...status }]);
    expect(status.status).toBe('failed');
  });

  it('has the queue_position 0 while a Prompt of a sandbox key waits', async () => {
    key = await api.createKey({ sandbox: true });
    finetuneId = (await makeFinetune(api, key)).id;
    const [{ id }] = await makePrompts(api, key, finetuneId, [
      { prompt: 'a robot', metadata: { sandbox: { delay_ms: 600_000 } } },
    ]);
    const { status, queue_position } = await statusOf(id);
    expect([status, queue_position]).toEqual(['queued', 0]);
  });

  it('is 404 for another caller, and under another Fine-Tune', async () => {
    const [{ id }] = await makePrompts(api, key, finetuneId);
    const other = await api.createKey();
    expect((await api.request('GET', `${pathOf(id)}/status`, { key: other })).status).toBe(404);
    const { id: another } = await makeFinetune(api, key);
    expect((await api.request('GET', `/v1/finetunes/${another}/prompts/${id}/status`, { key })).status).toBe(404);
  });
});
