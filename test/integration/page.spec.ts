import { type Config, CONFIG } from '@app/config';
import { chmodSync, existsSync, lstatSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SignInCode, newSignInCode } from '@app/domain';
import { keepDataPrivate } from '@app/process';
import { startTestApi } from '../support/api';
import { drawTask } from '../support/factories';
import { ofSuite } from '../support/of-suite';

const origin = 'https://app.example';
const token = 'a-token-for-metrics';

const api = ofSuite(() =>
  startTestApi({
    CORS_ORIGINS: `${origin}, http://localhost:5173`,
    METRICS_TOKEN: token,
    PUBLIC_URL: 'https://pictures.example',
  }),
);
const key = ofSuite(() => api.createKey());

describe('The page', () => {
  const other = ofSuite(() => startTestApi({ DATABASE_URL: api.config.databaseUrl ?? '' }));

  const assets = async (): Promise<string[]> => {
    const { text } = await api.request('GET', '/');
    return [...text.matchAll(/(?:src|href)="\.(\/assets\/[^"]+)"/g)].map(([, path]) => path);
  };
  const issue = async (change: Partial<SignInCode> = {}): Promise<string> => {
    const { code, row } = newSignInCode(key.token);
    await api.dataSource.getRepository(SignInCode).insert({ ...row, ...change });
    return code;
  };
  const exchange = (code: string, at = api) =>
    at.request<{ api_key: string }>('POST', '/sign-in', { headers: { authorization: `Code ${code}` } });

  it('needs no key, and runs and loads only its own files', async () => {
    const { status, headers, text } = await api.request('GET', '/');
    expect([status, headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    expect(headers.get('cache-control')).toBe('no-cache');
    const policy = headers.get('content-security-policy') ?? '';
    expect(policy).toContain("default-src 'none'");
    expect(policy).not.toMatch(/unsafe|https?:|\*/);
    expect(text).not.toMatch(/<script(?![^>]*src=)|<style|\son\w+=|style=|https?:/);
  });

  it('has assets with names by their content, kept for good and compressed', async () => {
    const paths = await assets();
    expect(paths.length).toBeGreaterThanOrEqual(3);
    for (const path of paths) {
      expect(path).toMatch(/-[\w-]{8}\.(js|css|svg)$/);
      const plain = await fetch(`${api.baseUrl}${path}`, { headers: { 'accept-encoding': 'identity' } });
      expect(plain.headers.get('content-encoding')).toBeNull();
      expect(plain.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
      const text = await plain.text();
      for (const encoding of ['br', 'gzip']) {
        const response = await fetch(`${api.baseUrl}${path}`, { headers: { 'accept-encoding': encoding } });
        expect(response.headers.get('content-encoding')).toBe(encoding);
        expect(await response.text()).toBe(text);
      }
    }
  });

  it('answers 304 for what a browser has, and 404 for what is not there', async () => {
    const etag = (await api.request('GET', '/')).headers.get('etag') ?? '';
    for (const known of [etag, `W/${etag}`, `"other", ${etag}`, '*'])
      expect((await api.request('GET', '/', { headers: { 'if-none-match': known } })).status).toBe(304);
    for (const name of ['index.html', '..%2findex.html', '..%2f..%2f..%2fpackage.json', '.stamp', '%00'])
      expect([name, (await api.request('GET', `/assets/${name}`)).status]).toEqual([name, 404]);
  });

  it('has one path for each page', async () => {
    for (const [path, proper] of [
      ['//', '/'],
      ['/docs/', '/docs'],
      ['/docs/limits/', '/docs/limits'],
    ]) {
      const { status, headers } = await api.request('GET', path);
      expect([path, status, headers.get('location')]).toEqual([path, 301, proper]);
    }
  });

  describe('A sign-in code', () => {
    it('gives its key once, at any of the api processes', async () => {
      const [first, second] = [await issue(), await issue()];
      const { status, body, headers } = await exchange(first);
      expect([status, body]).toEqual([200, { api_key: key.token }]);
      expect(headers.get('cache-control')).toBe('no-store');
      expect((await exchange(first)).status).toBe(401);
      const replies = await Promise.all(Array.from({ length: 20 }, (_, n) => exchange(second, n % 2 ? api : other)));
      expect(replies.map((reply) => reply.status).sort()).toEqual([200, ...Array<number>(19).fill(401)]);
    });

    it('expires', async () => {
      expect((await exchange(await issue({ expiresAt: new Date(Date.now() - 1000) }))).status).toBe(401);
    });

    it('is refused in any other form', async () => {
      const code = await issue();
      for (const wrong of [
        '',
        'x',
        `${code.slice(1)}`,
        `${code}x`,
        code.toLowerCase(),
        `${code} ${code}`,
        'x'.repeat(5000),
      ])
        expect([wrong, (await exchange(wrong)).status]).toEqual([wrong, 401]);
      expect((await api.request('POST', '/sign-in', { headers: { authorization: `Bearer ${code}` } })).status).toBe(
        401,
      );
      expect((await api.request('POST', '/sign-in')).status).toBe(401);
      expect((await exchange(code)).status).toBe(200);
    });

    it('is not in its row, and neither is its key', async () => {
      const code = await issue();
      const [{ row }] = await api.dataSource.query<{ row: string }[]>(
        'SELECT string_agg(t::text, chr(10)) AS row FROM sign_in_codes t',
      );
      for (const secret of [code, key.token, Buffer.from(key.token).toString('hex')]) expect(row).not.toContain(secret);
    });
  });
});

describe('Pages of other origins', () => {
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

  it('may send the headers that their clients have', async () => {
    const own = ['x-stainless-os', 'x-stainless-helper-method', 'openai-organization', 'user-agent'];
    const { headers } = await api.request('OPTIONS', '/v1/images/generations', {
      headers: {
        origin,
        'access-control-request-method': 'POST',
        'access-control-request-headers': ['authorization', ...own].join(', '),
      },
    });
    const allowed = (headers.get('access-control-allow-headers') ?? '').toLowerCase().split(',');
    expect(allowed).toEqual(expect.arrayContaining(own));
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

    it('comes in parts to a reader who asks for one, and whole if it has changed', async () => {
      const path = await picture();
      const url = `${api.baseUrl}${path}`;
      const whole = Buffer.from(await (await fetch(url)).arrayBuffer());
      const part = async (range: string, headers = {}) => {
        const answer = await fetch(url, { headers: { range, ...headers } });
        const bytes = Buffer.from(await answer.arrayBuffer());
        return { status: answer.status, bytes, at: answer.headers.get('content-range'), headers: answer.headers };
      };
      const { length } = whole;
      for (const [range, from, to] of [
        ['bytes=0-9', 0, 10],
        ['bytes=100-', 100, length],
        ['bytes=-7', length - 7, length],
        [`bytes=-${length + 5}`, 0, length],
        [`bytes=5-${length + 50}`, 5, length],
      ] as const) {
        const { status, bytes, at, headers } = await part(range);
        expect([range, status, at]).toEqual([range, 206, `bytes ${from}-${to - 1}/${length}`]);
        expect([headers.get('content-length'), bytes.equals(whole.subarray(from, to))]).toEqual([`${to - from}`, true]);
      }
      const { status, at, headers } = await part(`bytes=${length}-`);
      expect([status, at]).toEqual([416, `bytes */${length}`]);
      expect([headers.get('cache-control'), headers.get('etag')]).toEqual(['no-store', null]);
      const etag = (await fetch(url)).headers.get('etag')!;
      expect((await part('bytes=0-9', { 'if-range': etag })).status).toBe(206);
      for (const answer of [
        await part('bytes=0-9', { 'if-range': '"other"' }),
        await part('bytes=0-9,20-29'),
        await part('lines=1-2'),
      ])
        expect([answer.status, answer.bytes.equals(whole)]).toEqual([200, true]);
      expect((await fetch(url, { method: 'HEAD' })).headers.get('accept-ranges')).toBe('bytes');
    });

    it('may be kept by a CDN where the operator says so', async () => {
      const path = await picture();
      const config = api.app.get<Config>(CONFIG);
      config.pictureCache = 'public';
      const { headers } = await api.request('GET', path);
      config.pictureCache = 'private';
      expect(headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
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

describe('Privacy', () => {
  it('lets no cache store a caller’s JSON, including errors', async () => {
    const body = { prompt: 'a star' };
    const replies = [
      await api.request('GET', '/v1/sd/text-to-image', { key }),
      await api.request('POST', '/v1/sd/text-to-image', { key, body }),
      await api.request('POST', '/v1/sd/text-to-image', { key, body: {} }),
      await api.request('GET', '/v1/sd/text-to-image'),
      await api.request('GET', '/v1/nowhere', { key }),
      await api.request('GET', '/V1/sd/Text-to-Image/', { key }),
    ];
    expect(replies.map(({ status, headers }) => [status, headers.get('cache-control')])).toEqual(
      [200, 201, 400, 401, 404, 200].map((status) => [status, 'private, no-store']),
    );
    for (const path of ['/health/live', '/openapi.json'])
      expect((await api.request('GET', path)).headers.get('cache-control')).not.toBe('private, no-store');
  });

  it('shows metrics to local callers and holders of the token, not through a proxy', async () => {
    const ask = async (headers: Record<string, string> = {}) =>
      (await api.request('GET', '/metrics', { headers })).status;
    const proxied = { 'x-forwarded-for': '203.0.113.9' };
    await expect(ask()).resolves.toBe(200);
    await expect(ask(proxied)).resolves.toBe(401);
    await expect(ask({ ...proxied, authorization: 'Bearer wrong' })).resolves.toBe(401);
    await expect(ask({ ...proxied, authorization: `Bearer ${token}` })).resolves.toBe(200);
  });

  it('sends HSTS only if the service is reached over HTTPS', async () => {
    const header = 'strict-transport-security';
    expect((await api.request('GET', '/health/live')).headers.get(header)).toBe('max-age=31536000');
    const plain = await startTestApi();
    expect((await plain.request('GET', '/health/live')).headers.get(header)).toBeNull();
    await plain.close();
  });
});

describe(keepDataPrivate.name, () => {
  let folder: string;
  const umask = process.umask();

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'darkroom-private-'));
  });

  afterEach(() => {
    process.umask(umask);
    rmSync(folder, { recursive: true });
  });

  const modeOf = (path: string): number => lstatSync(path).mode & 0o777;

  it('makes the data folder private to its user', () => {
    const dataDir = join(folder, 'data');
    keepDataPrivate(dataDir);
    mkdirSync(join(dataDir, 'images'));
    writeFileSync(join(dataDir, 'images', 'a.png'), '');
    expect([dataDir, join(dataDir, 'images'), join(dataDir, 'images', 'a.png')].map(modeOf)).toEqual([
      0o700, 0o700, 0o600,
    ]);
  });

  it('says which setting names a file instead of a folder', () => {
    const file = join(folder, 'file');
    writeFileSync(file, '');
    expect(() => keepDataPrivate(file)).toThrow(`The data folder ${file} cannot be made, because a file is in the way`);
  });

  it('leaves a folder that may not be made to the code that needs it', () => {
    // Not even root may make a folder here.
    keepDataPrivate('/sys/darkroom');
    expect(existsSync('/sys/darkroom')).toBe(false);
  });

  it('removes permissions that an earlier version left open', () => {
    mkdirSync(join(folder, 'images'));
    writeFileSync(join(folder, 'api-key'), '');
    chmodSync(folder, 0o711);
    chmodSync(join(folder, 'images'), 0o755);
    chmodSync(join(folder, 'api-key'), 0o644);
    keepDataPrivate(folder);
    expect([folder, join(folder, 'images'), join(folder, 'api-key')].map(modeOf)).toEqual([0o700, 0o700, 0o600]);
    expect(statSync(folder).uid).toBe(process.getuid?.());
  });
});
