import type { TestApi, TestKey } from '../support/api';
import { startTestApi } from '../support/api';
import { drawTask } from '../support/factories';

const origin = 'https://app.example';

describe('Pages of other origins', () => {
  let api: TestApi;
  let key: TestKey;

  beforeAll(async () => {
    api = await startTestApi({ CORS_ORIGINS: `${origin}, http://localhost:5173` });
    key = await api.createKey();
  });

  afterAll(() => api.close());

  const picture = async (): Promise<string> => {
    const { body } = await api.request<{ id: string }>('POST', '/v1/sd/text-to-image', { key, body: { prompt: 'x' } });
    await drawTask(api, body.id);
    const path = `/v1/sd/text-to-image/${body.id}`;
    const { images } = (await api.request<{ images: string[] }>('GET', path, { key })).body;
    return new URL(images[0]).pathname;
  };
  const preflight = (path: string, from = origin, to = api) =>
    to.request('OPTIONS', path, {
      headers: {
        origin: from,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization, content-type, idempotency-key',
      },
    });

  it('may ask first, without a key', async () => {
    const { status, headers } = await preflight('/v1/sd/text-to-image');
    expect(status).toBe(204);
    expect(headers.get('access-control-allow-origin')).toBe(origin);
    expect(headers.get('access-control-allow-headers')).toMatch(/Authorization.*Idempotency-Key.*Prefer/);
    expect(headers.get('access-control-allow-methods')).toMatch(/PATCH/);
    expect(headers.get('access-control-allow-credentials')).toBeNull();
    expect(headers.get('vary')).toMatch(/Origin/);
  });

  it('may call /v1 and read its headers, errors included', async () => {
    const call = await api.request('GET', '/v1/sd/text-to-image', { key, headers: { origin } });
    expect([call.status, call.headers.get('access-control-allow-origin')]).toEqual([200, origin]);
    expect(call.headers.get('access-control-expose-headers')).toMatch(/Link.*Retry-After/);
    const refused = await api.request('GET', '/v1/sd/text-to-image', { headers: { origin } });
    expect([refused.status, refused.headers.get('access-control-allow-origin')]).toEqual([401, origin]);
  });

  it('may read pictures', async () => {
    const { status, headers } = await api.request('GET', await picture(), { headers: { origin } });
    expect([status, headers.get('access-control-allow-origin')]).toEqual([200, origin]);
  });

  it('may do nothing from an origin that is not listed, nor elsewhere', async () => {
    const other = await preflight('/v1/sd/text-to-image', 'https://evil.example');
    expect(other.headers.get('access-control-allow-origin')).toBeNull();
    for (const path of ['/metrics', '/openapi.json', '/health/live'])
      expect(
        (await api.request('GET', path, { headers: { origin } })).headers.get('access-control-allow-origin'),
      ).toBeNull();
  });

  it('is allowed no origin where none is listed, and every origin where CORS_ORIGINS is *', async () => {
    for (const [origins, allowed] of [
      ['', null],
      ['*', '*'],
    ] as const) {
      const another = await startTestApi(origins ? { CORS_ORIGINS: origins } : {});
      try {
        const { headers } = await preflight('/v1/sd/text-to-image', 'https://anybody.example', another);
        expect(headers.get('access-control-allow-origin')).toBe(allowed);
      } finally {
        await another.close();
      }
    }
  });

  describe('A picture', () => {
    it('has an ETag, by which a reader who has it gets 304 without it', async () => {
      const path = await picture();
      const first = await api.request('GET', path);
      const etag = first.headers.get('etag')!;
      expect(etag).toMatch(/^"\S+"$/);
      for (const method of ['GET', 'HEAD'])
        for (const header of [etag, `"x", ${etag}`, '*']) {
          const again = await api.request(method, path, { headers: { 'if-none-match': header } });
          expect([again.status, again.text, again.headers.get('etag')]).toEqual([304, '', etag]);
          expect(again.headers.get('cache-control')).toBe('private, max-age=31536000, immutable');
        }
      expect((await api.request('GET', path, { headers: { 'if-none-match': '"x"' } })).status).toBe(200);
    });

    it('is 404 for a reader who has it, once its record is gone', async () => {
      const path = await picture();
      const etag = (await api.request('GET', path)).headers.get('etag')!;
      const { body } = await api.request<{ id: string }[]>('GET', '/v1/sd/text-to-image?limit=1', { key });
      await api.request('DELETE', `/v1/sd/text-to-image/${body[0].id}`, { key });
      expect((await api.request('GET', path, { headers: { 'if-none-match': etag } })).status).toBe(404);
    });
  });
});
