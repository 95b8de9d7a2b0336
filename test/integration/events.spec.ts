import { Task } from '@app/domain';
import { progressChannel, type StepMessage, Tasks } from '@app/tasks';
import { DataSource, type Logger } from 'typeorm';
import { openEventClient } from '../support/event-client';
import { startTestApi } from '../support/api';
import { claimTask } from '../support/claim-task';
import { openEvents } from '../support/event-source';
import { until } from '../support/until';
import { ofSuite, ofTest } from '../support/of-suite';

describe('Events', () => {
  const api = ofSuite(startTestApi);
  const key = ofSuite(() => api.createKey());

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
  const claim = (id: string): Promise<Task> => claimTask(api.dataSource.manager, id);

  it('send the position, each step with its preview, and the record as GET returns it; then the stream ends', async () => {
    const before = await api.dataSource.manager.countBy(Task, { status: 'queued' });
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
    await api.app.get(Tasks).settle(task, { status: 'failed', error: 'No more paint.' });
    const last = await stream.next();
    const { body } = await api.request('GET', `/v1/sd/text-to-image/${id}`, { key });
    expect(last).toEqual({ event: 'terminated', id: '1-end', data: body });
    expect(await stream.next()).toBeUndefined();
  });

  it('move up when an earlier task is drawn', async () => {
    const first = await create();
    const second = await create();
    const stream = await open(second);
    const { data } = (await stream.next()) as { data: { position: number } };
    await claim(first);
    await api.request('POST', `/v1/sd/text-to-image/${first}/cancel`, { key });
    expect(await stream.next()).toMatchObject({ event: 'queued', data: { position: data.position - 1 } });
    stream.close();
  });

  it('send a returning client only what it has not received', async () => {
    const id = await create();
    await claim(id);
    const stream = await open(id, { 'last-event-id': '1-2' });
    for (const step of [1, 2, 3]) await tell({ id, attempt: 1, step, total: 4 });
    expect(await stream.next()).toMatchObject({ event: 'progress', id: '1-3' });
    await tell({ id, attempt: 2, step: 1, total: 4 });
    expect(await stream.next()).toMatchObject({ event: 'progress', id: '2-1' });
    stream.close();
  });

  it('send the record of a terminated task at once', async () => {
    const id = await create();
    await api.request('POST', `/v1/sd/text-to-image/${id}/cancel`, { key });
    const stream = await open(id);
    expect(await stream.next()).toMatchObject({ event: 'terminated', data: { id, status: 'canceled' } });
    expect(await stream.next()).toBeUndefined();
  });

  it('end when the record is deleted', async () => {
    const id = await create();
    const stream = await open(id);
    await stream.next();
    await api.request('DELETE', `/v1/sd/text-to-image/${id}`, { key });
    expect(await stream.next()).toEqual({ event: 'deleted', data: { id } });
    expect(await stream.next()).toBeUndefined();
  });

  it('send an EventSource the end once, and make it stop', async () => {
    const id = await create();
    const { source, events, statuses } = openEventClient(`${api.baseUrl}/v1/sd/text-to-image/${id}/events`, key.token);
    try {
      await until(async () => events.includes('queued'), 'it is told of the queue');
      await api.request('POST', `/v1/sd/text-to-image/${id}/cancel`, { key });
      await until(async () => source.readyState === source.CLOSED, 'it has stopped');
      expect(events.filter((name) => name === 'terminated')).toHaveLength(1);
      expect(statuses).toEqual([200, 204]);
    } finally {
      source.close();
    }
  });

  it('send the end again to a client that reports the end of another attempt', async () => {
    const id = await create();
    await api.request('POST', `/v1/sd/text-to-image/${id}/cancel`, { key });
    const stream = await open(id, { 'last-event-id': '999-end' });
    expect(await stream.next()).toMatchObject({ event: 'terminated', id: '0-end' });
    const path = `/v1/sd/text-to-image/${id}/events`;
    expect((await api.request('GET', path, { key, headers: { 'last-event-id': '0-end' } })).status).toBe(204);
  });

  it('ignore the id of an end event while the task is open', async () => {
    const id = await create();
    const stream = await open(id, { 'last-event-id': '1-end' });
    expect(await stream.next()).toMatchObject({ event: 'queued' });
    stream.close();
  });

  it('answer HEAD at once, with the headers of a stream', async () => {
    const id = await create();
    const { status, headers, text } = await api.request('HEAD', `/v1/sd/text-to-image/${id}/events`, { key });
    expect([status, headers.get('content-type'), text]).toEqual([200, 'text/event-stream; charset=utf-8', '']);
    expect((await api.request('HEAD', `/v1/sd/text-to-image/${'a'.repeat(24)}/events`, { key })).status).toBe(404);
  });

  describe('of one key', () => {
    const many = ofTest(() => api.createKey());
    let id: string;
    const path = () => `/v1/sd/text-to-image/${id}/events`;

    beforeEach(async () => {
      id = (
        await api.request<{ id: string }>('POST', '/v1/sd/text-to-image', { key: many, body: { prompt: 'a star' } })
      ).body.id;
    });

    it('are limited to 100; another may open when one has closed', async () => {
      const streams = await Promise.all(
        Array.from({ length: 100 }, () => openEvents(`${api.baseUrl}${path()}`, many.token)),
      );
      const refused = await api.request<{ code: string }>('GET', path(), { key: many });
      expect([refused.status, refused.body.code]).toEqual([429, 'TooManyEventStreams']);
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
      expect((await api.request('HEAD', path(), { key: many })).status).toBe(200);
      streams[0].close();
      await until(async () => {
        const stream = await openEvents(`${api.baseUrl}${path()}`, many.token).catch(() => undefined);
        return stream !== undefined && streams.push(stream) > 0;
      }, 'there is room for one more');
      for (const stream of streams) stream.close();
    });

    it('read a change once, however many streams there are', async () => {
      const streams = await Promise.all(
        Array.from({ length: 50 }, () => openEvents(`${api.baseUrl}${path()}`, many.token)),
      );
      for (const stream of streams) expect(await stream.next()).toMatchObject({ event: 'queued' });
      const dataSource = api.app.get(DataSource);
      const reads: string[] = [];
      const { logger } = dataSource;
      dataSource.logger = {
        logQuery: (sql: string) => void reads.push(sql),
        logQueryError: () => undefined,
      } as unknown as Logger;
      try {
        await api.app.get(Tasks).cancel(id);
        for (const stream of streams) expect(await stream.next()).toMatchObject({ event: 'terminated', id: '0-end' });
      } finally {
        dataSource.logger = logger;
      }
      // The record with its images, and other queries of the process in the meantime; one read per stream would be 50.
      const most = streams.length / 2;
      expect(reads.filter((sql) => sql.startsWith('SELECT') && sql.includes('"generations"')).length).toBeLessThan(
        most,
      );
      expect(reads.filter((sql) => sql.includes('"tasks"')).length).toBeLessThan(most);
    });
  });
});
