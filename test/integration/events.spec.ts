import { ImageTask } from '@app/domain';
import type { StepMessage } from '@app/queue';
import { ImageTaskLifeCycle, progressChannel } from '@app/queue';
import type { TestApi, TestKey } from '../support/api';
import { startTestApi } from '../support/api';
import { openEvents } from '../support/event-source';

describe('Events', () => {
  let api: TestApi;
  let key: TestKey;

  beforeAll(async () => {
    api = await startTestApi();
    key = await api.createKey();
  });

  afterAll(() => api.close());

  const create = async (): Promise<string> => {
    const { body } = await api.request<{ id: string }>('POST', '/v1/sd/text-to-image', {
      key,
      body: { prompt: 'a star', steps: 4 },
    });
    return body.id;
  };
  const open = (id: string, headers = {}) =>
    openEvents(`${api.baseUrl}/v1/sd/text-to-image/${id}/events`, key.token, headers);
  const tell = (step: StepMessage) =>
    api.dataSource.query('SELECT pg_notify($1, $2)', [progressChannel, JSON.stringify(step)]);
  const claim = async (id: string): Promise<ImageTask> => {
    const claim = await api.app.get(ImageTaskLifeCycle).claim(id);
    if (claim.kind !== 'claimed') throw new Error(`The task is ${claim.kind}.`);
    return claim.task;
  };

  it('tells the position, each step with its preview, and the record as GET returns it; then it ends', async () => {
    const before = await api.dataSource.manager.countBy(ImageTask, { status: 'queued' });
    const id = await create();
    const stream = await open(id);
    expect(await stream.next()).toMatchObject({ event: 'queued', data: { position: before } });
    const task = await claim(id);
    await tell({ id, attempt: 1, step: 1, total: 4, preview: 'AAAA' });
    await tell({ id, attempt: 1, step: 2, total: 4 });
    expect(await stream.next()).toEqual({
      event: 'progress',
      id: '1-1',
      data: { step: 1, total: 4, preview: 'data:image/jpeg;base64,AAAA' },
    });
    expect(await stream.next()).toEqual({ event: 'progress', id: '1-2', data: { step: 2, total: 4, preview: null } });
    await api.app.get(ImageTaskLifeCycle).settle(task, { status: 'failed', error: 'No more paint.' });
    const last = await stream.next();
    const { body } = await api.request('GET', `/v1/sd/text-to-image/${id}`, { key });
    expect(last).toMatchObject({ event: 'terminated', data: body });
    expect(await stream.next()).toBeUndefined();
  });

  it('moves up when one before it is drawn', async () => {
    const first = await create();
    const second = await create();
    const stream = await open(second);
    const { data } = (await stream.next()) as { data: { position: number } };
    await claim(first);
    await api.request('POST', `/v1/sd/text-to-image/${first}/cancel`, { key });
    expect(await stream.next()).toMatchObject({ event: 'queued', data: { position: data.position - 1 } });
    stream.close();
  });

  it('sends a client that comes back only what is new to it', async () => {
    const id = await create();
    await claim(id);
    const stream = await open(id, { 'last-event-id': '1-2' });
    for (const step of [1, 2, 3]) await tell({ id, attempt: 1, step, total: 4 });
    expect(await stream.next()).toMatchObject({ event: 'progress', id: '1-3' });
    await tell({ id, attempt: 2, step: 1, total: 4 });
    expect(await stream.next()).toMatchObject({ event: 'progress', id: '2-1' });
    stream.close();
  });

  it('tells at once of one that has terminated', async () => {
    const id = await create();
    await api.request('POST', `/v1/sd/text-to-image/${id}/cancel`, { key });
    const stream = await open(id);
    expect(await stream.next()).toMatchObject({ event: 'terminated', data: { id, status: 'canceled' } });
    expect(await stream.next()).toBeUndefined();
  });

  it('ends when the record is deleted', async () => {
    const id = await create();
    const stream = await open(id);
    await stream.next();
    await api.request('DELETE', `/v1/sd/text-to-image/${id}`, { key });
    expect(await stream.next()).toEqual({ event: 'deleted', data: { id } });
    expect(await stream.next()).toBeUndefined();
  });

  it('answers 404 to another caller, as to an unknown id', async () => {
    const other = await api.createKey();
    const id = await create();
    for (const path of [id, 'a'.repeat(24)])
      expect((await api.request('GET', `/v1/sd/text-to-image/${path}/events`, { key: other })).status).toBe(404);
  });
});
