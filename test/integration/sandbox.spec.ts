import { Task } from '@app/domain';
import { fatalCount, Tasks } from '@app/tasks';
import sharp from 'sharp';
import { In } from 'typeorm';
import { startTestApi } from '../support/api';
import { openEvents } from '../support/event-source';
import { receiversOfSuite } from '../support/receiver';
import { until } from '../support/until';
import { ofSuite } from '../support/of-suite';

interface Record {
  id: string;
  status: string;
  error: string | null;
  images: string[];
  served_by: string | null;
  code?: string;
  errors?: { pointer: string }[];
}

describe('Sandbox keys', () => {
  const api = ofSuite(startTestApi);
  const startReceiver = receiversOfSuite();
  const key = ofSuite(() => api.createKey({ sandbox: true }));

  const draw = (body: object = {}, owner = key) =>
    api.request<Record>('POST', '/v1/sd/text-to-image', {
      key: owner,
      body: { prompt: 'a star over Berlin', ...body },
    });
  const terminated = (id: string): Promise<Record> =>
    until(async () => {
      const { body } = await api.request<Record>('GET', `/v1/sd/text-to-image/${id}`, { key });
      return ['succeeded', 'failed', 'canceled'].includes(body.status) && body;
    }, 'the Generation has terminated');
  const pictureAt = async (url: string) => {
    const response = await fetch(`${api.baseUrl}${new URL(url).pathname}`);
    return { type: response.headers.get('content-type'), file: Buffer.from(await response.arrayBuffer()) };
  };

  it('get marked pictures of the right number, size and format, which no engine draws', async () => {
    const { body: made } = await draw({ num_generations: 2, aspect_ratio: 'portrait', output_format: 'webp', seed: 7 });
    expect(made).toMatchObject({ status: 'queued', images: [] });
    const done = await terminated(made.id);
    expect(done).toMatchObject({ status: 'succeeded', served_by: 'sandbox', error: null });
    expect(done.images).toHaveLength(2);
    const pictures = await Promise.all(done.images.map(pictureAt));
    for (const { type, file } of pictures) {
      expect(type).toBe('image/webp');
      expect(await sharp(file).metadata()).toMatchObject({ format: 'webp', width: 512, height: 768 });
    }
    expect(pictures[0].file.equals(pictures[1].file)).toBe(false);
  });

  it('get 4096 pixels for high resolution', async () => {
    const { body } = await draw({ high_resolution: true, aspect_ratio: 'landscape' });
    const done = await terminated(body.id);
    const { width, height } = await sharp((await pictureAt(done.images[0])).file).metadata();
    expect([width, height]).toEqual([4096, 2731]);
  });

  it('fail on request, with the requested message and a real webhook', async () => {
    const receiver = await startReceiver();
    const { body } = await draw({ webhook: receiver.url, metadata: { sandbox: { fail: 'Out of paint.' } } });
    const delivered = JSON.parse((await receiver.next(1)).body) as Record;
    expect(delivered).toMatchObject({ id: body.id, status: 'failed', error: 'Out of paint.', images: [] });
  });

  it('wait as long as requested, and can be canceled meanwhile', async () => {
    const { body } = await draw({ metadata: { sandbox: { delay_ms: 600_000 } } });
    const canceled = await api.request<Record>('POST', `/v1/sd/text-to-image/${body.id}/cancel`, { key });
    expect(canceled.body.status).toBe('canceled');
    const started = Date.now();
    const { body: short } = await draw({ metadata: { sandbox: { delay_ms: 300 } } });
    expect((await terminated(short.id)).status).toBe('succeeded');
    expect(Date.now() - started).toBeGreaterThanOrEqual(290);
  });

  const stepsOf = (id: string) => openEvents(`${api.baseUrl}/v1/sd/text-to-image/${id}/events`, key.token);

  it('send every step to the last, and the record at its end', async () => {
    const { body } = await draw({ steps: 6, metadata: { sandbox: { delay_ms: 1_200 } } });
    const stream = await stepsOf(body.id);
    const steps: number[] = [];
    let last: unknown;
    for (let event = await stream.next(); event; event = await stream.next())
      if (event.event === 'progress') steps.push((event.data as { step: number }).step);
      else last = event;
    const [first] = steps;
    expect(steps).toEqual(Array.from({ length: 7 - first }, (_, i) => first + i));
    const { body: record } = await api.request('GET', `/v1/sd/text-to-image/${body.id}`, { key });
    expect(last).toMatchObject({ event: 'terminated', data: record });
    expect(await api.dataSource.manager.findOneByOrFail(Task, { id: body.id })).toMatchObject({ deaths: 0 });
  });

  it('can be canceled between two steps, after which no step follows', async () => {
    const { body } = await draw({ steps: 50, metadata: { sandbox: { delay_ms: 60_000 } } });
    const stream = await stepsOf(body.id);
    await until(
      async () =>
        (await api.request<Record>('GET', `/v1/sd/text-to-image/${body.id}`, { key })).body.status === 'processing',
      'it is processing',
    );
    const canceled = await api.request<Record>('POST', `/v1/sd/text-to-image/${body.id}/cancel`, { key });
    expect(canceled.body).toMatchObject({ status: 'canceled', images: [] });
    let last: unknown;
    for (let event = await stream.next(); event; event = await stream.next()) last = event;
    expect(last).toMatchObject({ event: 'terminated', data: { id: body.id, status: 'canceled' } });
  });

  it('do not wait for another key’s slow tasks', async () => {
    const slow = await api.createKey({ sandbox: true });
    const order = { steps: 10, metadata: { sandbox: { delay_ms: 600_000 } } };
    const made = await Promise.all(Array.from({ length: 20 }, () => draw(order, slow)));
    await until(async () => {
      const ids = made.map(({ body }) => body.id);
      return (await api.dataSource.manager.countBy(Task, { id: In(ids), status: 'processing' })) === 20;
    }, 'all 20 are processing at once');
    const { body } = await draw({});
    expect((await terminated(body.id)).status).toBe('succeeded');
    const ids = made.map(({ body: { id } }) => id);
    expect(await api.dataSource.manager.countBy(Task, { id: In(ids), status: 'processing' })).toBe(20);
    for (const id of ids) await api.request('POST', `/v1/sd/text-to-image/${id}/cancel`, { key: slow });
  });

  it.each([
    [{ sandbox: true }, '/metadata/sandbox'],
    [{ sandbox: { fail: '' } }, '/metadata/sandbox/fail'],
    [{ sandbox: { fail: 3 } }, '/metadata/sandbox/fail'],
    [{ sandbox: { delay_ms: -1 } }, '/metadata/sandbox/delay_ms'],
    [{ sandbox: { delay_ms: 600_001 } }, '/metadata/sandbox/delay_ms'],
    [{ sandbox: { delay_ms: '5' } }, '/metadata/sandbox/delay_ms'],
    [{ sandbox: { 'a/b': 1 } }, '/metadata/sandbox/a~1b'],
  ])('reject %j', async (metadata, pointer) => {
    const { status, body } = await draw({ metadata });
    expect(status).toBe(400);
    expect(body).toMatchObject({ code: 'ValidationFailed', errors: [{ pointer }] });
    const plain = await api.createKey();
    expect((await draw({ metadata }, plain)).status).toBe(201);
  });

  it('draw Prompts too', async () => {
    const finetune = await api.request<Record>('POST', '/v1/finetunes', { key, body: { name: 'robot' } });
    const path = `/v1/finetunes/${finetune.body.id}/prompts`;
    const body = [{ prompt: 'a robot' }, { prompt: 'a robot', metadata: { sandbox: { fail: 'Rusty.' } } }];
    await api.request('POST', path, { key, body });
    const [failed, drawn] = await until(async () => {
      const reply = await api.request<{ images: string[]; error_message: string | null }[]>('GET', path, { key });
      return reply.body.every(({ images, error_message }) => images.length > 0 || error_message) && reply.body;
    }, 'both Prompts have terminated');
    expect(failed.error_message).toBe('Rusty.');
    expect(drawn.images).toHaveLength(1);
  });

  it('have tasks that no engine claims, and no usage', async () => {
    await draw({ metadata: { sandbox: { delay_ms: 600_000 } } });
    const plain = await draw({}, await api.createKey());
    const tasks = api.app.get(Tasks);
    const claimed: Task[] = [];
    for (let task = await tasks.claim(); task; task = await tasks.claim()) claimed.push(task);
    expect(claimed.map(({ id }) => id)).toContain(plain.body.id);
    expect(claimed.filter(({ sandbox }) => sandbox)).toEqual([]);
    const usage = await api.dataSource.query<unknown[]>('SELECT * FROM daily_usage WHERE owner_id = $1', [key.id]);
    expect(usage).toEqual([]);
  });

  /** The worker of a waiting task dies, as far as anybody can see, after so many claims. */
  async function loseWorker(attempts: number): Promise<string> {
    const { body } = await draw({ metadata: { sandbox: { delay_ms: 600_000 } } });
    const { manager } = api.dataSource;
    await until(() => manager.existsBy(Task, { id: body.id, status: 'processing' }), 'it is processing');
    await manager.query(`UPDATE tasks SET attempt = $2, heartbeat_at = now() - interval '31 s' WHERE id = $1`, [
      body.id,
      attempts,
    ]);
    return body.id;
  }

  it('lose no task when its worker dies', async () => {
    const id = await loseWorker(2);
    await until(() => api.dataSource.manager.existsBy(Task, { id, attempt: 3 }), 'it is claimed again');
    expect((await api.request<Record>('POST', `/v1/sd/text-to-image/${id}/cancel`, { key })).body.status).toBe(
      'canceled',
    );
  });

  it('fail a task that has had too many workers', async () => {
    expect(await terminated(await loseWorker(2 * fatalCount))).toMatchObject({
      status: 'failed',
      error: expect.stringMatching(/its worker ended unexpectedly/) as string,
    });
  });
});
