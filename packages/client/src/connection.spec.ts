import { elapsed, endless, FakeService, json, problem } from '../../../test/support/fake-service';
import { createClient } from './client.ts';
import { type ClientOptions, Connection } from './connection.ts';
import { PromptFailedError } from './errors.ts';

const clientOf = (service: FakeService, options: Partial<ClientOptions> = {}) =>
  createClient({ baseUrl: 'https://darkroom.example', apiKey: 'dr_key', fetch: service.fetch, ...options });

describe(Connection.name, () => {
  beforeEach(() => {
    jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] });
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  describe('an error whose body never ends', () => {
    it('is thrown with its status after the time limit', async () => {
      const work = clientOf(new FakeService([endless(404)]), { requestTimeoutMs: 500 }).generations.get('g');
      expect(await elapsed(work)).toBeLessThan(700);
      await expect(work).rejects.toMatchObject({ status: 404, message: expect.stringContaining('404') as string });
    });

    it('has a time limit in an upload too', async () => {
      const work = clientOf(new FakeService([endless(422)]), { requestTimeoutMs: 500 }).finetunes.uploadWeights(
        'f',
        new Uint8Array(8),
      );
      expect(await elapsed(work)).toBeLessThan(700);
      await expect(work).rejects.toMatchObject({ status: 422 });
    });

    it.each([404, 409, 503])('ends with the reason of an aborted signal, after %i', async (status) => {
      const service = new FakeService([endless(status)]);
      const abort = new AbortController();
      const work = clientOf(service).generations.create({ prompt: 'x' }, { signal: abort.signal });
      const rejected = expect(work).rejects.toThrow('enough');
      await jest.advanceTimersByTimeAsync(100);
      abort.abort(new Error('enough'));
      await rejected;
      expect(service.sent).toHaveLength(1);
    });
  });

  describe('Retry-After', () => {
    const day = () => problem(429, { 'retry-after': '86400' });

    it('of more than a minute is the error at once, with its seconds', async () => {
      const service = new FakeService([day]);
      const work = clientOf(service).models.list();
      expect(await elapsed(work)).toBeLessThan(100);
      await expect(work).rejects.toMatchObject({ status: 429, code: 'RateLimited', retryAfter: 86_400 });
      expect(service.sent).toHaveLength(1);
    });

    it('is kept up to maxWaitMs', async () => {
      const service = new FakeService([() => problem(429, { 'retry-after': '90' }), json([])]);
      const work = clientOf(service, { maxWaitMs: 90_000 }).models.list();
      expect(await elapsed(work)).toBeGreaterThanOrEqual(90_000);
      await expect(work).resolves.toEqual([]);
    });

    it('of months is no short wait, if it is allowed', async () => {
      const service = new FakeService([() => problem(429, { 'retry-after': '9000000' })]);
      void clientOf(service, { maxWaitMs: Infinity }).models.list();
      await jest.advanceTimersByTimeAsync(60_000);
      expect(service.sent).toHaveLength(1);
    });

    it('may be a date, and is absent from an error without it', async () => {
      const date = new Date(Date.now() + 7_200_000).toUTCString();
      const [dated, plain] = [problem(503, { 'retry-after': date }), problem(404)].map((answer) =>
        clientOf(new FakeService([answer])).models.list(),
      );
      await expect(dated).rejects.toMatchObject({ status: 503 });
      const { retryAfter } = (await dated.catch((error: unknown) => error)) as { retryAfter: number };
      expect(Math.abs(retryAfter - 7200)).toBeLessThan(2);
      await expect(plain).rejects.toMatchObject({ status: 404, retryAfter: undefined });
    });
  });

  it.each(['', ' ', 'dr key', 'dr_ké'])('refuses the key "%s"', (apiKey) => {
    expect(() => clientOf(new FakeService([json([])]), { apiKey })).toThrow(TypeError);
  });

  it('says that a host is not reachable', async () => {
    const error = Object.assign(new Error('connect'), { code: 'EHOSTUNREACH' });
    await expect(clientOf(new FakeService([error]), { retries: 0 }).models.list()).rejects.toMatchObject({
      status: 0,
      message: 'darkroom.example is not reachable from this machine.',
    });
  });

  it.each([
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'https://darkroom.example does not speak TLS as https needs it. Perhaps'],
    ['EPROTO', 'https://darkroom.example does not speak TLS as https needs it. Perhaps'],
    ['CERT_HAS_EXPIRED', 'The certificate of https://darkroom.example has expired.'],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'The certificate of https://darkroom.example is from an issuer'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'The certificate of https://darkroom.example is not one of "darkroom.example".'],
  ])('tells %s in one line', async (code, told) => {
    const cause = Object.assign(new Error('800C43D44E7F0000:error:0A00010B:SSL routines:x.c:350:\n'), { code });
    const failed = clientOf(new FakeService([new Error('fetch failed', { cause })]), { retries: 0 }).models.list();
    const { message } = (await failed.catch((error: unknown) => error)) as Error;
    expect(message.startsWith(told)).toBe(true);
    expect(message).not.toMatch(/error:|\n/);
  });

  it.each([
    ['https://darkroom.example/v1', 'https://darkroom.example/v1/models'],
    ['https://darkroom.example/v1/', 'https://darkroom.example/v1/models'],
    ['https://example.com/darkroom/v1', 'https://example.com/darkroom/v1/models'],
    ['https://example.com/api-v1', 'https://example.com/api-v1/v1/models'],
    ['https://v1', 'https://v1/v1/models'],
  ])('asks %s for %s: a "/v1" at the end of baseUrl is left off', async (baseUrl, url) => {
    const service = new FakeService([json([])]);
    await clientOf(service, { baseUrl }).models.list();
    expect(service.sent[0].url).toBe(url);
  });

  describe('download', () => {
    it('says where it looked for a picture that is not there', async () => {
      const service = new FakeService([problem(404, {}, 'ImageNotFound')]);
      const work = clientOf(service).download('https://other.example/images/a.png');
      await expect(work).rejects.toMatchObject({
        status: 404,
        code: 'ImageNotFound',
        requestId: 'abc',
        message:
          "Not now. download() asks https://darkroom.example for /images/a.png, whatever address the picture's URL has.",
      });
    });

    it('leaves other errors as they are', async () => {
      const work = clientOf(new FakeService([problem(500)])).download('/images/a.png');
      await expect(work).rejects.toMatchObject({ status: 500, message: 'Not now.' });
    });
  });

  describe('an id', () => {
    const service = new FakeService([json({})]);
    const client = clientOf(service);

    it.each(['', '.', '..', '../../finetunes/abc', 'a/b', 'a?b', 'a#b', 'a%2fb', 'a b', 'a\n'])(
      'is not "%s", which would be part of another request',
      (id) => {
        expect(() => client.generations.delete(id)).toThrow(TypeError);
        expect(() => client.prompts.get('f', id)).toThrow('is not an id');
        expect(() => client.prompts.list(id)).toThrow('is not an id');
        expect(() => client.generations.redeliver('g', id)).toThrow('is not an id');
        expect(() => client.generations.events(id)).toThrow('is not an id');
        expect(service.sent).toHaveLength(0);
      },
    );

    type Call = (...args: unknown[]) => unknown;
    const groups = Object.entries(client as unknown as Record<string, Record<string, Call> | Call>);
    const methods = groups.flatMap(([group, calls]) =>
      typeof calls === 'function'
        ? []
        : Object.entries(calls).map(([name, call]): [string, Call] => [`${group}.${name}`, call]),
    );
    const takesNone =
      /^((generations|drawings|finetunes|collections|keys|models|usage|uploads)\.(create|train|list|pages|current)|operator\.(?!redeliver).*)$/;
    const takesTwo = /^((prompts|styles)\.(get|status|events|delete|wait|cancel|deliveries)|generations\.redeliver)$/;

    it.each([[undefined], [null], [7], [{}], [['g']]])('is not %j, in any method', async (wrong) => {
      for (const [name, call] of methods.filter(([name]) => !takesNone.test(name))) {
        const calls = [[wrong, 'g'], ...(takesTwo.test(name) ? [['g', wrong]] : [])];
        for (const ids of calls) await expect(async () => call(...ids)).rejects.toThrow('is not an id');
      }
      expect(service.sent).toHaveLength(0);
    });

    it('is sent as it is', async () => {
      await client.generations.redeliver('-a_B9', 'd');
      expect(service.sent.at(-1)?.url).toBe(
        'https://darkroom.example/v1/sd/text-to-image/-a_B9/deliveries/d/redeliver',
      );
    });
  });

  describe('waiting for a Prompt', () => {
    const prompt = { id: 'p', images: [], error_message: null as string | null };
    const completed_at = '2026-11-20T09:21:33.123Z';
    const waitFor = async (status: string, error_message: string | null) => {
      const service = new FakeService([
        json({ status: 'queued', completed_at: null }),
        json({ status, completed_at }),
        json({ ...prompt, error_message }),
      ]);
      const work = clientOf(service).prompts.wait('f', 'p');
      await elapsed(work);
      return { work, paths: service.sent.map(({ url }) => new URL(url).pathname) };
    };

    it('ends when it is drawn', async () => {
      const { work, paths } = await waitFor('succeeded', null);
      await expect(work).resolves.toEqual(prompt);
      const path = '/v1/finetunes/f/prompts/p';
      expect(paths).toEqual([`${path}/status`, `${path}/status`, path]);
    });

    it.each([
      ['failed', 'no paint left', 'The Prompt p has failed: no paint left'],
      ['canceled', null, 'The Prompt p was canceled.'],
    ])('throws when it has %s', async (status, error_message, message) => {
      const { work } = await waitFor(status, error_message);
      await expect(work).rejects.toBeInstanceOf(PromptFailedError);
      await expect(work).rejects.toMatchObject({ status, message, prompt: { id: 'p', error_message } });
    });
  });
});
