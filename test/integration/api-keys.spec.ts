import { ApiKey } from '@app/domain';
import { Webhook } from 'standardwebhooks';
import type { TestApi, TestKey } from '../support/api';
import { startTestApi } from '../support/api';
import { startReceiver } from '../support/receiver';
import { untilAfter } from '../support/until';

describe('API keys', () => {
  let api: TestApi;

  beforeAll(async () => {
    api = await startTestApi();
  });

  afterAll(() => api.close());

  const statusOf = async (method: string, path: string, key: Pick<TestKey, 'token'>): Promise<unknown> => {
    const { status, body } = await api.request<{ code?: string }>(method, path, {
      key,
      ...(method === 'POST' && { body: {} }),
    });
    return status === 403 ? body.code : status;
  };
  const rowOf = (key: TestKey): Promise<ApiKey> => api.dataSource.manager.findOneByOrFail(ApiKey, { id: key.id });
  const inHours = (hours: number): Date => new Date(Date.now() + hours * 3_600_000);

  describe('scopes', () => {
    it.each([
      [[], 'ScopeMissing', 'ScopeMissing'],
      [['read'], 200, 'ScopeMissing'],
      [['write'], 200, 400],
      [['read', 'write'], 200, 400],
      [['admin'], 200, 400],
    ] as const)('%j: a GET returns %s, a POST %s', async (scopes, get, post) => {
      const key = await api.createKey({ scopes: [...scopes] });
      expect(await statusOf('GET', '/v1/sd/text-to-image', key)).toBe(get);
      expect(await statusOf('POST', '/v1/sd/text-to-image', key)).toBe(post);
    });

    it('are named by the refusal, with what its caller can do', async () => {
      const key = await api.createKey({ scopes: ['read'] });
      const { body } = await api.request<{ detail: string }>('POST', '/v1/finetunes', { key, body: {} });
      expect(body.detail).toMatch(/needs the scope "write", .* Use a key that has it/);
    });

    it('let a read-only key change nothing', async () => {
      const key = await api.createKey({ scopes: ['read'] });
      for (const [method, path] of [
        ['DELETE', '/v1/sd/text-to-image/none'],
        ['POST', '/v1/sd/text-to-image/none/cancel'],
        ['POST', '/v1/finetunes'],
        ['PUT', '/v1/finetunes/none/weights'],
        ['POST', '/v1/prompts/collections'],
      ])
        expect(await statusOf(method, path, key)).toBe('ScopeMissing');
    });
  });

  describe('rotation', () => {
    it('gives the same key a new secret and keeps the old one valid for the grace period', async () => {
      const old = await api.createKey();
      const row = await rowOf(old);
      const token = row.rotateSecret(inHours(24));
      await api.dataSource.manager.save(row);
      const made = await api.request<{ id: string }>('POST', '/v1/sd/text-to-image', {
        key: old,
        body: { prompt: 'a star' },
      });
      expect(await statusOf('GET', `/v1/sd/text-to-image/${made.body.id}`, { token })).toBe(200);
      await api.dataSource.manager.update(ApiKey, { id: old.id }, { previousSecretExpiresAt: inHours(-0.001) });
      // A key that was read within the last second is not read again for requests that change nothing.
      await untilAfter(
        1_000,
        async () => (await statusOf('GET', '/v1/finetunes', old)) === 401,
        'the old secret is refused',
      );
      expect(await statusOf('GET', '/v1/finetunes', { token })).toBe(200);
    });

    it('accepts the new secret at once, even if the key is cached', async () => {
      const key = await api.createKey();
      expect(await statusOf('GET', '/v1/finetunes', key)).toBe(200);
      const row = await rowOf(key);
      const token = row.rotateSecret(inHours(24));
      await api.dataSource.manager.save(row);
      expect(await statusOf('GET', '/v1/finetunes', { token })).toBe(200);
    });

    it('does not let in either secret of a revoked key', async () => {
      const old = await api.createKey();
      const row = await rowOf(old);
      const token = row.rotateSecret(inHours(24));
      row.revokedAt = new Date();
      await api.dataSource.manager.save(row);
      expect([await statusOf('GET', '/v1/finetunes', old), await statusOf('GET', '/v1/finetunes', { token })]).toEqual([
        401, 401,
      ]);
    });

    it('of the webhook secret signs with both until the grace period ends', async () => {
      const receiver = await startReceiver();
      try {
        const key = await api.createKey();
        const row = await rowOf(key);
        row.rotateWebhookSecret(inHours(24));
        await api.dataSource.manager.save(row);
        const canceled = async (): Promise<void> => {
          const body = { prompt: 'a star', webhook: receiver.url };
          const made = await api.request<{ id: string }>('POST', '/v1/sd/text-to-image', { key, body });
          await api.request('POST', `/v1/sd/text-to-image/${made.body.id}/cancel`, { key });
        };
        await canceled();
        const during = await receiver.next(1);
        for (const secret of [key.webhookSecret, row.webhookSecret])
          expect(() => new Webhook(secret).verify(during.body, during.headers as Record<string, string>)).not.toThrow();
        await api.dataSource.manager.update(
          ApiKey,
          { id: key.id },
          { previousWebhookSecretExpiresAt: inHours(-0.001) },
        );
        await canceled();
        const after = await receiver.next(2);
        const verify = (secret: string) => () =>
          new Webhook(secret).verify(after.body, after.headers as Record<string, string>);
        expect(verify(key.webhookSecret)).toThrow();
        expect(verify(row.webhookSecret)).not.toThrow();
      } finally {
        await receiver.close();
      }
    });
  });

  it('record when they were last used', async () => {
    const key = await api.createKey();
    expect((await rowOf(key)).lastUsedAt).toBeNull();
    const before = Date.now();
    await statusOf('GET', '/v1/finetunes', key);
    expect((await rowOf(key)).lastUsedAt?.getTime()).toBeGreaterThanOrEqual(before);
  });
});
