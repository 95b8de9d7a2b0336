import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '@app/config';
import { isTerminated, WebhookDelivery } from '@app/domain';
import type { GenerationDto } from '@app/domain/http';
import { JsonLogger } from '@app/observability';
import type { INestApplicationContext } from '@nestjs/common';
import { createInference } from '../../apps/inference/src/create-inference';
import { startTestApi, type TestApi, type TestKey } from '../support/api';
import { threadFile } from '../support/inference';
import { type Receiver, startReceiver } from '../support/receiver';
import { type RedisServer, startRedis, whyNoRedis } from '../support/redis';
import { type S3Server, startS3 } from '../support/s3-server';
import { until } from '../support/until';

const onRedis = whyNoRedis ? describe.skip : describe;

onRedis(`The api and the worker on Redis and S3${whyNoRedis ? ` (${whyNoRedis})` : ''}`, () => {
  let redis: RedisServer;
  let s3: S3Server;
  let api: TestApi;
  let worker: INestApplicationContext;
  let key: TestKey;
  let receiver: Receiver;
  let workerDir: string;
  let env: Record<string, string>;

  /** Another machine, which shares only the database, Redis and the store with the api. */
  const startWorker = (): Promise<INestApplicationContext> => {
    const config = loadConfig({
      ...env,
      DATA_DIR: workerDir,
      MODELS_DIR: api.config.modelsDir,
      MODEL_FALLBACK: 'on',
      DEVICE: 'cpu',
      INFERENCE_THREADS: '1',
      LOG_LEVEL: 'silent',
    });
    const logger = new JsonLogger('inference', 'silent');
    return createInference({ config, databaseUrl: api.config.databaseUrl ?? '', logger, threadFile });
  };

  beforeAll(async () => {
    redis = await startRedis();
    s3 = await startS3();
    receiver = await startReceiver();
    env = { QUEUE_BACKEND: 'redis', REDIS_URL: redis.url, ...s3.env, MODELS_DIR: process.env.TEST_MODELS_DIR! };
    api = await startTestApi(env);
    key = await api.createKey();
    env = { ...env, DATABASE_URL: api.config.databaseUrl ?? '' };
    workerDir = await mkdtemp(join(tmpdir(), 'darkroom-worker-'));
    worker = await startWorker();
  });

  afterAll(async () => {
    await worker.close();
    await api.close();
    await receiver.close();
    await redis.close();
    await s3.close();
    await rm(workerDir, { recursive: true, force: true });
  });

  const create = async (target = api): Promise<string> => {
    const { status, body } = await target.request<GenerationDto>('POST', '/v1/sd/text-to-image', {
      key,
      body: { prompt: 'a red circle', model: 'shapes', steps: 2, webhook: receiver.url },
    });
    expect(status).toBe(201);
    return body.id;
  };

  const terminated = (id: string): Promise<GenerationDto> =>
    until(async () => {
      const { body } = await api.request<GenerationDto>('GET', `/v1/sd/text-to-image/${id}`, { key });
      return isTerminated(body.status) && body;
    }, `${id} has terminated`);

  const told = (id: string): Promise<WebhookDelivery> =>
    until(async () => {
      const row = await api.dataSource.manager.findOneBy(WebhookDelivery, { taskId: id, status: 'delivered' });
      return row ?? undefined;
    }, `the receiver knows of ${id}`);

  it('answer with an error and no half picture while the store is away', async () => {
    const { images } = await terminated(await create());
    const path = new URL(images[0]).pathname;
    for (const trouble of ['unavailable', 'deny'] as const) {
      s3.trouble(trouble);
      const reply = await api.request<{ code: string }>('GET', path);
      expect([reply.status, reply.body.code]).toEqual([503, 'ServiceUnavailable']);
    }
    s3.trouble('breakOff');
    const broken = await fetch(`${api.baseUrl}${path}`);
    await expect(broken.arrayBuffer()).rejects.toThrow();
    s3.trouble(undefined);
    expect((await api.request('GET', path)).status).toBe(200);
  });

  it('lose nothing when Redis forgets everything', async () => {
    const ids = [];
    for (let i = 0; i < 6; i++) ids.push(await create());
    await redis.flush();
    for (const id of ids) expect((await terminated(id)).status).toBe('succeeded');
    await Promise.all(ids.map(told));
  });

  it('accept and draw tasks while Redis is away', async () => {
    await redis.kill();
    const startedAt = performance.now();
    const ids = [await create(), await create()];
    // Each waits two seconds for Redis; without that limit both would wait until it is back, which is later.
    expect(performance.now() - startedAt).toBeLessThan(20_000);
    await redis.start();
    for (const id of ids) expect((await terminated(id)).status).toBe('succeeded');
    await Promise.all(ids.map(told));
  });

  it('start, accept tasks and end while Redis is away', async () => {
    await redis.kill();
    const otherApi = await startTestApi(env);
    const otherWorker = await startWorker();
    const id = await create(otherApi);
    await otherWorker.close();
    await otherApi.close();
    await redis.start();
    expect((await terminated(id)).status).toBe('succeeded');
  });

  it('can end when Redis goes away, and when it has just come back', async () => {
    for (const isBack of [false, true]) {
      const otherApi = await startTestApi(env);
      const otherWorker = await startWorker();
      await redis.kill();
      expect(await otherApi.request('GET', '/health/ready')).toMatchObject({
        status: 200,
        body: { status: 'degraded' },
      });
      if (isBack) await redis.start();
      await otherWorker.close();
      await otherApi.close();
      if (!isBack) await redis.start();
    }
  });
});
