import { newSignInCode, SignInCode } from '@app/domain';
import type { TestApi, TestKey } from '../support/api';
import { startTestApi } from '../support/api';

describe('The page', () => {
  let api: TestApi;
  let other: TestApi;
  let key: TestKey;

  beforeAll(async () => {
    api = await startTestApi();
    key = await api.createKey();
    other = await startTestApi({ DATABASE_URL: api.config.databaseUrl ?? '' });
  });

  afterAll(async () => {
    await other.close();
    await api.close();
  });

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
