import OpenAI from 'openai';
import sharp from 'sharp';
import { OpenaiAnswer } from '../../apps/api/src/generations/openai-answer';
import { Unanswered } from '../../apps/api/src/generations/unanswered';
import { longRequestsPerKey } from '../../apps/api/src/defence/open-requests';
import { WaitInterceptor } from '../../apps/api/src/generations/wait.interceptor';
import { startBalancer } from '../support/balancer';
import { startTestApi, type TestKey } from '../support/api';
import { drawTask, failTask } from '../support/factories';
import { until } from '../support/until';
import { ofSuite, ofTest } from '../support/of-suite';

interface ErrorJson {
  error: { message: string; type: string; param: string | null; code: string };
}

const path = '/v1/images/generations';

/** OpenAI's official client, with nothing but its address changed. */
describe('POST /v1/images/generations', () => {
  const api = ofSuite(() => startTestApi({ RATE_LIMIT_PER_MINUTE: '600' }));
  /** The service's own pictures, at once. */
  const sandbox = ofSuite(() => api.createKey({ sandbox: true, rateLimitPerMinute: 0 }));
  const key = ofTest(() => api.createKey({ rateLimitPerMinute: 0 }));

  const { repeatMs } = Unanswered;
  const { signOfLifeMs } = WaitInterceptor;
  afterEach(() => {
    OpenaiAnswer.waitSeconds = 600;
    Unanswered.repeatMs = repeatMs;
    WaitInterceptor.signOfLifeMs = signOfLifeMs;
  });

  const clientOf = ({ token }: Pick<TestKey, 'token'>, { at = api.baseUrl, maxRetries = 0 } = {}) =>
    new OpenAI({ apiKey: token, baseURL: `${at}/v1`, maxRetries });
  const raw = (body: unknown, options = {}) => api.request<ErrorJson>('POST', path, { key, body, ...options });
  const generations = (owner: TestKey) =>
    api.request<{ id: string; status: string; metadata: unknown; aspect_ratio: string }[]>(
      'GET',
      '/v1/sd/text-to-image',
      {
        key: owner,
      },
    );
  const queued = () => until(async () => (await generations(key)).body[0]?.id, 'it is queued');

  it('draws and answers with URLs', async () => {
    const before = Math.floor(Date.now() / 1000) - 60;
    const { created, data } = await clientOf(sandbox).images.generate({
      prompt: 'a red circle',
      n: 2,
      user: 'customer-42',
      response_format: 'url',
    });
    expect(created).toBeGreaterThan(before);
    expect(data).toHaveLength(2);
    for (const { url } of data!) {
      const response = await fetch(`${api.baseUrl}${new URL(url!).pathname}`);
      const { width, height } = await sharp(Buffer.from(await response.arrayBuffer())).metadata();
      expect([width, height]).toEqual([512, 512]);
    }
    const { body } = await generations(sandbox);
    expect(body[0]).toMatchObject({ status: 'succeeded', num_generations: 2, user: 'customer-42' });
  });

  it('answers with the pictures themselves', async () => {
    const size = '512x768' as '512x512';
    const { data } = await clientOf(sandbox).images.generate({ prompt: 'a star', size, response_format: 'b64_json' });
    expect(data).toHaveLength(1);
    const { format, width, height } = await sharp(Buffer.from(data![0].b64_json!, 'base64')).metadata();
    expect([format, width, height]).toEqual(['png', 512, 768]);
    expect((await generations(sandbox)).body[0]).toMatchObject({ aspect_ratio: null, width: 512, height: 768 });
  });

  it('waits for an engine', async () => {
    const answer = clientOf(key).images.generate({ model: 'sd1.5', prompt: 'a star' });
    await drawTask(api, await queued());
    expect((await answer).data).toHaveLength(1);
  });

  describe('has errors that the client knows', () => {
    const errorOf = (client: OpenAI, more: object) =>
      client.images.generate({ prompt: 'x', ...more }).then(
        () => undefined,
        (error: unknown) => error,
      );

    it.each([
      ['an unknown size', { size: '1001x1001' }, OpenAI.BadRequestError, 'ValidationFailed', 'size'],
      ['too many pictures', { n: 11 }, OpenAI.BadRequestError, 'ValidationFailed', 'n'],
      ['no prompt', { prompt: '' }, OpenAI.BadRequestError, 'PromptMissing', 'prompt'],
      ['an unknown field', { steps: 3 }, OpenAI.BadRequestError, 'ValidationFailed', 'steps'],
      ['a quality that there is not', { quality: 'best' }, OpenAI.BadRequestError, 'ValidationFailed', 'quality'],
      ['another model', { model: 'imagen' }, OpenAI.NotFoundError, 'ModelNotFound', 'model'],
    ] as const)('for %s', async (_, more, type, code, param) => {
      const error = await errorOf(clientOf(key), more);
      expect(error).toBeInstanceOf(type);
      expect(error).toMatchObject({
        code,
        param,
        type: 'invalid_request_error',
        requestID: expect.any(String) as string,
      });
    });

    it('for a wrong key, a key that may only read, and too many requests', async () => {
      expect(await errorOf(clientOf({ token: 'sk-wrong' }), {})).toBeInstanceOf(OpenAI.AuthenticationError);
      const reader = await api.createKey({ scopes: ['read'] });
      expect(await errorOf(clientOf(reader), {})).toBeInstanceOf(OpenAI.PermissionDeniedError);
      const limited = await api.createKey({ rateLimitPerMinute: 1 });
      await api.request('GET', '/v1/models', { key: limited });
      const refused = await errorOf(clientOf(limited), {});
      expect(refused).toBeInstanceOf(OpenAI.RateLimitError);
      expect(refused).toMatchObject({ type: 'rate_limit_error', code: 'RateLimited' });
    });

    it('for a drawing that fails', async () => {
      const answer = errorOf(clientOf(key), {});
      await failTask(api, await queued(), 'No more paint.');
      expect(await answer).toMatchObject({
        status: 422,
        code: 'GenerationFailed',
        error: { message: 'No more paint.' },
      });
    });

    it('for one of which all pictures are flagged, with the code of OpenAI', async () => {
      const answer = errorOf(clientOf(key), {});
      const message = 'The picture was flagged, and it is not stored.';
      await failTask(api, await queued(), message, { filtered: 1, computeSeconds: 1 });
      expect(await answer).toMatchObject({ status: 422, code: 'moderation_blocked', error: { message } });
    });

    it('for one that is deleted meanwhile', async () => {
      const answer = errorOf(clientOf(key), {});
      const id = await queued();
      await api.request('DELETE', `/v1/sd/text-to-image/${id}`, { key });
      expect(await answer).toMatchObject({
        status: 422,
        code: 'GenerationFailed',
        error: { message: `The Generation ${id} was deleted before it was finished.` },
      });
    });

    it('for one that takes too long, and names it', async () => {
      OpenaiAnswer.waitSeconds = 1;
      const { status, headers, body } = await raw({ prompt: 'x' });
      const [{ id }] = (await generations(key)).body;
      expect(headers.get('x-generation-id')).toBe(id);
      expect([status, body.error.code, body.error.message]).toEqual([
        422,
        'GenerationUnfinished',
        expect.stringContaining(`/v1/sd/text-to-image/${id}`),
      ]);
    });

    it('for anything else below /v1/images', async () => {
      const missing = await api.request<ErrorJson>('GET', '/v1/images/variations', { key });
      expect([missing.status, missing.body.error.code]).toEqual([404, 'RouteNotFound']);
      const method = await api.request<ErrorJson>('GET', path, { key });
      expect([method.status, method.headers.get('allow'), method.body.error.code]).toEqual([
        405,
        'POST',
        'MethodNotAllowed',
      ]);
      const query = await api.request<ErrorJson>('POST', `${path}?page=1`, { key, body: { prompt: 'x' } });
      expect([query.status, query.body.error.param]).toEqual([400, 'page']);
    });
  });

  describe('behind a balancer that gives up a silent answer', () => {
    it('is drawn once for the repeats of a client, which gets it', async () => {
      const balancer = await startBalancer(api.baseUrl, 300);
      const answer = clientOf(key, { at: balancer.url, maxRetries: 2 }).images.generate({ prompt: 'a star' });
      const id = await queued();
      await balancer.gaveUp;
      await drawTask(api, id);
      expect((await answer).data).toHaveLength(1);
      expect((await generations(key)).body).toHaveLength(1);
      await balancer.stop();
    });

    it('is not joined by another request, nor while somebody waits for it', async () => {
      const abort = new AbortController();
      const [left, waiting] = [abort.signal, undefined].map((signal) =>
        clientOf(key).images.generate({ prompt: 'a star' }, { signal }),
      );
      await until(async () => (await generations(key)).body.length === 2, 'both are queued');
      abort.abort();
      await expect(left).rejects.toThrow(OpenAI.APIUserAbortError);
      const another = clientOf(key).images.generate({ prompt: 'a moon' });
      await until(async () => (await generations(key)).body.length === 3, 'another is queued');
      for (const { id } of (await generations(key)).body) await drawTask(api, id);
      expect([(await waiting).data, (await another).data].map((data) => data?.length)).toEqual([1, 1]);
    });

    it('is deleted like any other, as long as a repeat may come', async () => {
      const abort = new AbortController();
      const answer = clientOf(key).images.generate({ prompt: 'a star' }, { signal: abort.signal });
      const id = await queued();
      abort.abort();
      await expect(answer).rejects.toThrow(OpenAI.APIUserAbortError);
      const left = `SELECT FROM idempotent_replies WHERE $1 = ANY (record_ids)`;
      await until(async () => (await api.dataSource.query<unknown[]>(left, [id])).length === 1, 'it is left');
      expect((await api.request('DELETE', `/v1/sd/text-to-image/${id}`, { key })).status).toBe(200);
      expect(await api.dataSource.query(left, [id])).toEqual([]);
    });

    it('has white space sent meanwhile', async () => {
      WaitInterceptor.signOfLifeMs = 20;
      const balancer = await startBalancer(api.baseUrl, 2_000);
      const sent = fetch(`${balancer.url}${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key.token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ prompt: 'a star' }),
      });
      const id = await queued();
      const reply = await sent;
      expect([reply.status, reply.headers.get('x-generation-id')]).toEqual([200, id]);
      await drawTask(api, id);
      const body = await reply.text();
      expect(body).toMatch(/^ +\{/);
      expect((JSON.parse(body) as { data: unknown[] }).data).toHaveLength(1);
      await balancer.stop();
    });

    it('breaks off behind the error where white space was sent, and a repeat is told it', async () => {
      WaitInterceptor.signOfLifeMs = 20;
      const reply = await fetch(`${api.baseUrl}${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key.token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ prompt: 'a star' }),
      });
      await failTask(api, await queued(), 'No more paint.');
      let body = '';
      const read = async () => {
        for await (const piece of reply.body!) body += Buffer.from(piece).toString();
      };
      await expect(read()).rejects.toThrow('terminated');
      expect((JSON.parse(body) as ErrorJson).error).toMatchObject({
        code: 'GenerationFailed',
        message: 'No more paint.',
      });
      await expect(clientOf(key).images.generate({ prompt: 'a star' })).rejects.toMatchObject({
        ...{ status: 422, code: 'GenerationFailed', error: { message: 'No more paint.' } },
      });
      expect((await generations(key)).body).toHaveLength(1);
    });
  });

  it('cancels what a caller who has gone would never see, whichever process finds out', async () => {
    // A process that ends remembers nothing of it: the row is all there is.
    Unanswered.repeatMs = 3_600_000;
    const abort = new AbortController();
    const answer = clientOf(key).images.generate({ prompt: 'x' }, { signal: abort.signal });
    const id = await queued();
    abort.abort();
    await expect(answer).rejects.toThrow(OpenAI.APIUserAbortError);
    const left = `SELECT FROM idempotent_replies WHERE $1 = ANY (record_ids)`;
    await until(async () => (await api.dataSource.query<unknown[]>(left, [id])).length === 1, 'it is left');
    Unanswered.repeatMs = 50;
    await until(async () => (await generations(key)).body[0].status === 'canceled', `${id} is canceled`);
  });

  it('lets as many of one key wait as come together, and no more than its limit', async () => {
    const most = longRequestsPerKey as Record<string, number>;
    const usual = most['waiting answer'];
    expect(usual).toBe(200);
    most['waiting answer'] = 20;
    const waiting = Array.from({ length: 20 }, () => raw({ prompt: 'x' }));
    await until(async () => (await generations(key)).body.length === 20, 'all of them wait');
    const { status, headers, body } = await raw({ prompt: 'x' });
    most['waiting answer'] = usual;
    expect([status, body.error.code, Number(headers.get('retry-after')) > 0]).toEqual([429, 'TooManyWaiting', true]);
    expect((await generations(key)).body).toHaveLength(20);
    for (const { id } of (await generations(key)).body)
      await api.request('POST', `/v1/sd/text-to-image/${id}/cancel`, { key });
    for (const each of waiting) expect((await each).body.error.code).toBe('GenerationFailed');
  });
});
