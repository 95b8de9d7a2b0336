import { Task } from '@app/domain';
import sharp from 'sharp';
import { Webhook } from 'standardwebhooks';
import type { TestKey } from '../support/api';
import { openEvents } from '../support/event-source';
import { type Receiver, startReceiver } from '../support/receiver';
import { startTestService } from '../support/service';
import { until } from '../support/until';
import { ofSuite } from '../support/of-suite';

interface GenerationJson {
  id: string;
  status: string;
  images: string[];
  thumbnail: string | null;
  seed: number;
  metrics: { compute_seconds: number };
  [field: string]: unknown;
}

jest.setTimeout(600_000);

describe('From a prompt to a picture', () => {
  const service = ofSuite(startTestService);
  let receiver: Receiver;
  let key: TestKey;

  beforeAll(async () => {
    receiver = await startReceiver();
    key = await service.createKey();
  });

  afterAll(async () => {
    await receiver.close();
  });

  const create = async (body: object): Promise<GenerationJson> => {
    const reply = await service.request<GenerationJson>('POST', '/v1/sd/text-to-image', { key, body });
    expect(reply.status).toBe(201);
    return reply.body;
  };
  const find = async (id: string) =>
    (await service.request<GenerationJson>('GET', `/v1/sd/text-to-image/${id}`, { key })).body;
  const terminated = (id: string): Promise<GenerationJson> =>
    until(async () => {
      const found = await find(id);
      return found.completed_at ? found : undefined;
    }, 'the Generation has terminated');
  /** The api under test listens on its own port, not on the one in its URLs. */
  const fetchImage = (url: string) => fetch(`${service.baseUrl}${new URL(url).pathname}`);

  /** Deliveries about a terminated Generation, once everything about it has been posted. */
  const postsTo = async (path: string, id: string) => {
    await until(async () => {
      const log = await service.request<{ status: string }[]>('GET', `/v1/sd/text-to-image/${id}/deliveries`, { key });
      return log.body.length > 0 && log.body.every(({ status }) => status === 'delivered');
    }, 'the webhook was told');
    return receiver.received.filter((post) => post.path === path);
  };

  /** Shares of a picture's pixels that are clearly red and clearly blue. */
  const shares = async (png: Buffer) => {
    const pixels = await sharp(png).raw().toBuffer();
    let [red, blue] = [0, 0];
    for (let n = 0; n < pixels.length; n += 3) {
      const [r, g, b] = [pixels[n], pixels[n + 1], pixels[n + 2]];
      if (r > 150 && r > g + 60 && r > b + 60) red++;
      if (b > 150 && b > r + 60 && b > g + 30) blue++;
    }
    return { red: (3 * red) / pixels.length, blue: (3 * blue) / pixels.length };
  };

  it('draws the prompt, serves the picture, and posts to the webhook exactly what GET returns', async () => {
    const { id } = await create({
      prompt: 'a red circle on a blue background',
      seed: 1,
      webhook: `${receiver.url}/hook`,
    });
    const done = await terminated(id);
    expect(done).toMatchObject({ status: 'succeeded', error: null, model: 'sd1.5', prompt_chunks: 1 });
    expect(done.served_by).toMatch(/^shapes@[0-9a-f]{12}$/);
    expect(done.images).toHaveLength(1);

    const response = await fetchImage(done.images[0]);
    expect(response.headers.get('content-type')).toBe('image/png');
    expect(response.headers.get('cache-control')).toBe('private, max-age=31536000, immutable');
    const png = Buffer.from(await response.arrayBuffer());
    expect(response.headers.get('content-length')).toBe(String(png.length));
    expect(await sharp(png).metadata()).toMatchObject({ format: 'png', width: 512, height: 512 });
    const { red, blue } = await shares(png);
    expect(red).toBeGreaterThan(0.05);
    expect(red).toBeLessThan(0.5);
    expect(blue).toBeGreaterThan(0.4);

    const small = await fetchImage(done.thumbnail!);
    expect(small.headers.get('content-type')).toBe('image/webp');
    const thumbnail = sharp(Buffer.from(await small.arrayBuffer()));
    expect(await thumbnail.metadata()).toMatchObject({ format: 'webp', width: 384, height: 384 });
    expect((await shares(await thumbnail.png().toBuffer())).red).toBeCloseTo(red, 1);

    const hook = await receiver.next(1);
    const found = await service.request('GET', `/v1/sd/text-to-image/${id}`, { key });
    expect(hook.body).toBe(found.text);
    expect(new Webhook(key.webhookSecret).verify(hook.body, hook.headers as Record<string, string>)).toEqual(
      found.body,
    );
  });

  it('streams the steps to the end', async () => {
    const { id } = await create({ prompt: 'a moon', steps: 12, scheduler: 'euler' });
    const stream = await openEvents(`${service.baseUrl}/v1/sd/text-to-image/${id}/events`, key.token);
    const steps: number[] = [];
    for (let event = await stream.next(); event; event = await stream.next()) {
      if (event.event === 'progress') steps.push((event.data as { step: number }).step);
      if (event.event === 'terminated') expect(event.data).toEqual(await find(id));
    }
    expect(steps.at(-1)).toBe(12);
    expect(steps).toEqual([...steps].sort((a, b) => a - b));
  });

  it('shows no picture and posts no success once a drawing is canceled', async () => {
    const { id } = await create({
      prompt: 'a heart',
      steps: 50,
      num_generations: 8,
      webhook: `${receiver.url}/canceled`,
    });
    await until(async () => (await find(id)).status === 'processing', 'drawing has begun');
    const reply = await service.request<GenerationJson>('POST', `/v1/sd/text-to-image/${id}/cancel`, { key });
    expect(reply.body).toMatchObject({ status: 'canceled', images: [] });
    const next = await terminated((await create({ prompt: 'a heart', steps: 2 })).id);
    expect(next.status).toBe('succeeded');
    // The time that it had taken is counted once its worker has stopped.
    const later = await find(id);
    const { metrics } = reply.body;
    expect(later).toEqual({ ...reply.body, metrics: { ...metrics, compute_seconds: later.metrics.compute_seconds } });
    expect(await service.backEnds.storage.contents(id)).toEqual([]);
    const posts = await postsTo('/canceled', id);
    expect(posts.map(({ body }) => (JSON.parse(body) as GenerationJson).status)).toEqual(['canceled']);
  });

  it('survives kill -9 of the worker: the picture comes once, with the same seed', async () => {
    const { id, seed } = await create({
      prompt: 'a blue square',
      steps: 25,
      num_generations: 2,
      webhook: `${receiver.url}/killed`,
    });
    await until(async () => (await find(id)).served_by ?? undefined, 'drawing has begun');
    await service.workers[0].end('SIGKILL');
    await service.startWorker();
    const done = await until(
      async () => {
        const found = await find(id);
        return found.completed_at ? found : undefined;
      },
      'the other worker has drawn it',
      300_000,
    );
    expect(done).toMatchObject({ status: 'succeeded', seed });
    expect(done.images).toHaveLength(2);
    const { attempt } = await service.dataSource.manager.findOneByOrFail(Task, { id });
    expect(attempt).toBeGreaterThan(1);
    expect(await service.backEnds.storage.contents(id)).toEqual(
      ['0.png', '0.thumbnail.webp', '1.png'].map((name) => `${id}/${attempt}/${name}`),
    );
    expect(await postsTo('/killed', id)).toHaveLength(1);
  });
});
