import { chmodSync, existsSync, lstatSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { keepDataPrivate } from '@app/process';
import type { TestApi, TestKey } from '../support/api';
import { startTestApi } from '../support/api';

const token = 'a-token-for-metrics';

describe('Privacy', () => {
  let api: TestApi;
  let key: TestKey;

  beforeAll(async () => {
    api = await startTestApi({ METRICS_TOKEN: token, PUBLIC_URL: 'https://pictures.example' });
    key = await api.createKey();
  });

  afterAll(() => api.close());

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
