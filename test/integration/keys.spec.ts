import { ApiKey, newIdentifier } from '@app/domain';
import type { TestApi, TestKey } from '../support/api';
import { startTestApi } from '../support/api';
import type { ProblemJson } from '../support/factories';
import { until } from '../support/until';

interface KeyJson {
  id: string;
  token: string | null;
  webhook_secret: string | null;
  [field: string]: unknown;
}

describe('Keys over HTTP', () => {
  let api: TestApi;
  let admin: TestKey;

  beforeAll(async () => {
    api = await startTestApi();
    admin = await api.createKey({ scopes: ['admin'] });
  });

  afterAll(() => api.close());

  const call = <T = KeyJson & ProblemJson>(method: string, path = '', body?: unknown, headers = {}) =>
    api.request<T>(method, `/v1/keys${path}`, { key: admin, headers, ...(body !== undefined && { body }) });
  const create = async (body: object = {}) => (await call('POST', '', { name: 'shop', ...body })).body;
  const statusOf = async (token: string | null, method = 'GET') =>
    (
      await api.request(method, '/v1/sd/text-to-image', {
        key: { token: token! },
        body: method === 'POST' ? { prompt: 'x' } : undefined,
      })
    ).status;

  it('are made with what they may do and how much', async () => {
    const { status, body } = await call('POST', '', {
      name: 'shop',
      scopes: ['read'],
      sandbox: true,
      rate_limit_per_minute: 60,
      max_queued: 0,
      max_concurrent: 'default',
      retention_days: 30,
    });
    expect(status).toBe(201);
    const { id, token, webhook_secret, prefix, created_at, ...rest } = body;
    expect(rest).toEqual({
      name: 'shop',
      scopes: ['read'],
      sandbox: true,
      rate_limit_per_minute: 60,
      max_queued: 0,
      max_concurrent: null,
      max_storage_mb: null,
      retention_days: 30,
      last_used_at: null,
      revoked_at: null,
    });
    expect([token, webhook_secret, created_at]).toEqual([
      expect.stringMatching(new RegExp(`^${String(prefix)}_[\\w-]{43}$`)),
      expect.stringMatching(/^whsec_/),
      expect.stringMatching(/Z$/),
    ]);
    expect([await statusOf(token), await statusOf(token, 'POST')]).toEqual([200, 403]);
    const { secretHash } = await api.dataSource.manager.findOneByOrFail(ApiKey, { id });
    expect(secretHash.toString()).not.toContain(token!.slice(-43));
  });

  it('may write and read, where nothing else is said', async () => {
    const { token, scopes } = await create();
    expect([scopes, await statusOf(token), await statusOf(token, 'POST')]).toEqual([['write'], 200, 201]);
  });

  it('have an address at which they are read without secrets', async () => {
    const { headers, body } = await call('POST', '', { name: 'shop' });
    expect(headers.get('location')).toMatch(new RegExp(`/v1/keys/${body.id}$`));
    const { token: _, webhook_secret: __, ...shown } = body;
    expect((await call('GET', `/${body.id}`)).body).toEqual(shown);
    const unknown = await call('GET', `/${newIdentifier()}`);
    expect([unknown.status, unknown.body.code]).toEqual([404, 'KeyNotFound']);
  });

  it('are listed newest first, in pages, without secrets', async () => {
    const made = [await create({ name: 'a' }), await create({ name: 'b' })];
    const { body, headers, text } = await call<KeyJson[]>('GET', '?limit=2');
    expect(body.map(({ id }) => id)).toEqual([made[1].id, made[0].id]);
    expect(headers.get('link')).toMatch(/rel="next"/);
    expect(text).not.toMatch(/token|secret|whsec/);
    const { body: all } = await call<KeyJson[]>('GET');
    expect(all.map(({ id }) => id)).toContain(admin.id);
  });

  it('change their name and limits, and nothing that is left out or null', async () => {
    const {
      id,
      token: _token,
      webhook_secret: _secret,
      ...before
    } = await create({ max_queued: 5, retention_days: 7 });
    const changed = await call('PATCH', `/${id}`, { name: 'store', max_queued: 'default', max_concurrent: 2 });
    expect([changed.status, changed.body]).toEqual([
      200,
      { id, ...before, name: 'store', max_queued: null, max_concurrent: 2 },
    ]);
    expect((await call('PATCH', `/${id}`, { max_concurrent: null, retention_days: 'keep' })).body).toEqual({
      ...changed.body,
      retention_days: null,
    });
  });

  it.each([
    ['a limit that is a fraction', { max_queued: 1.5 }, '/max_queued'],
    ['a limit below zero', { rate_limit_per_minute: -1 }, '/rate_limit_per_minute'],
    ['another word', { max_storage_mb: 'keep' }, '/max_storage_mb'],
    ['a retention of no day', { retention_days: 0 }, '/retention_days'],
    ['an empty name', { name: ' ' }, '/name'],
    ['scopes', { scopes: ['admin'] }, '/scopes'],
  ])('refuse %s', async (_, change, pointer) => {
    const { id } = await create();
    const { status, body } = await call('PATCH', `/${id}`, change);
    expect([status, body.errors?.[0].pointer]).toEqual([400, pointer]);
  });

  it.each([
    ['an unknown scope', ['root']],
    ['no scope', []],
    ['a scope twice', ['read', 'read']],
    ['a word', 'admin'],
  ])('are not made with %s', async (_, scopes) => {
    const { status, body } = await call('POST', '', { name: 'x', scopes });
    expect([status, body.errors?.[0].pointer]).toEqual([400, '/scopes']);
  });

  it('get a new token, beside which the previous one is valid for a while', async () => {
    const { id, token } = await create();
    const { status, body } = await call('POST', `/${id}/rotate`, { grace_hours: 1 });
    expect(status).toBe(201);
    const left = Date.parse(String(body.previous_token_expires_at)) - Date.now();
    expect([left > 3_500_000, left <= 3_600_000]).toEqual([true, true]);
    expect([await statusOf(token), await statusOf(body.token)]).toEqual([200, 200]);
    const once = { 'idempotency-key': 'rotate-once' };
    const again = await call('POST', `/${id}/rotate`, { grace_hours: 0 }, once);
    expect([await statusOf(body.token), await statusOf(again.body.token)]).toEqual([401, 200]);
    const day = await call('POST', `/${id}/rotate`);
    expect(Date.parse(String(day.body.previous_token_expires_at)) - Date.now()).toBeGreaterThan(23 * 3_600_000);
  });

  it('get a new secret for their webhooks, beside which the previous one signs for a while', async () => {
    const { id, webhook_secret: first } = await create();
    const { status, body } = await call('POST', `/${id}/rotate-webhook-secret`, { grace_hours: 1 });
    expect([status, body.webhook_secret]).toEqual([201, expect.stringMatching(/^whsec_/)]);
    const row = await api.dataSource.manager.findOneByOrFail(ApiKey, { id });
    expect(row.signingSecrets()).toEqual([body.webhook_secret, first]);
    expect(row.previousWebhookSecretExpiresAt?.toISOString()).toBe(body.previous_webhook_secret_expires_at);
  });

  it('keep their name as it was sent', async () => {
    const { id, name } = await create({ name: ' web shop ' });
    const renamed = await call('PATCH', `/${id}`, { name: 'shop\u00a0' });
    expect([name, renamed.body.name]).toEqual([' web shop ', 'shop\u00a0']);
  });

  it('are revoked, with all that waits for them', async () => {
    const { id, token } = await create();
    expect(await statusOf(token, 'POST')).toBe(201);
    const { status, body } = await call<{ delete: string }>('DELETE', `/${id}`);
    expect([status, body]).toEqual([200, { delete: `Key ${id} has been deleted successfully.` }]);
    expect(await statusOf(token, 'POST')).toBe(401);
    expect(await statusOf(token)).toBe(401);
    await until(async () => {
      const open = await api.dataSource.query<unknown[]>(
        `SELECT FROM image_tasks WHERE owner_id = $1 AND status = 'queued'`,
        [id],
      );
      return open.length === 0;
    }, 'its tasks are canceled');
    const { body: list } = await call<KeyJson[]>('GET', '?limit=1');
    expect(list[0]).toMatchObject({ id, revoked_at: expect.any(String) as string });
    expect((await call('DELETE', `/${id}`)).status).toBe(200);
    for (const [method, path, change] of [
      ['POST', '/rotate', {}],
      ['POST', '/rotate-webhook-secret', {}],
      ['PATCH', '', { max_queued: 7 }],
    ] as const) {
      const refused = await call(method, `/${id}${path}`, change);
      expect([refused.status, refused.body.code]).toEqual([409, 'KeyRevoked']);
    }
  });

  it('do not revoke themselves, so that one is always left', async () => {
    const { status, body } = await call('DELETE', `/${admin.id}`);
    expect([status, body.code]).toEqual([409, 'KeyInUse']);
    expect((await call('GET')).status).toBe(200);
  });

  it('are told from unknown ones', async () => {
    for (const [method, path, body] of [
      ['PATCH', `/${newIdentifier()}`, {}],
      ['POST', '/x/rotate', {}],
      ['DELETE', '/%00', undefined],
    ] as const) {
      const reply = await call(method, path, body);
      expect([reply.status, reply.body.code]).toEqual([404, 'KeyNotFound']);
    }
  });

  it('are for the scope admin alone', async () => {
    const { id } = await create();
    for (const scopes of [['read'], ['write'], ['read', 'write']] as const) {
      const key = await api.createKey({ scopes: [...scopes] });
      for (const [method, path] of [
        ['GET', ''],
        ['POST', ''],
        ['PATCH', `/${id}`],
        ['POST', `/${id}/rotate`],
        ['DELETE', `/${id}`],
      ]) {
        const { status, body } = await api.request(method, `/v1/keys${path}`, { key });
        expect([status, body.code]).toEqual([403, 'ScopeMissing']);
      }
    }
    expect((await call('GET')).status).toBe(200);
  });

  it('keep no secret in a reply that is stored under an Idempotency-Key', async () => {
    const headers = { 'idempotency-key': 'a-key' };
    const first = await call('POST', '', { name: 'once' }, headers);
    const second = await call('POST', '', { name: 'once' }, headers);
    expect(second.body).toEqual({ ...first.body, token: null, webhook_secret: null });
    const rotation = { 'idempotency-key': 'a-rotation' };
    const rotated = await call('POST', `/${first.body.id}/rotate`, {}, rotation);
    expect((await call('POST', `/${first.body.id}/rotate`, {}, rotation)).body).toEqual({
      ...rotated.body,
      token: null,
    });
    const rows = await api.dataSource.query<{ body: string }[]>(
      'SELECT body FROM idempotent_replies WHERE owner_id = $1',
      [admin.id],
    );
    for (const { body } of rows)
      for (const secret of [first.body.token!, rotated.body.token!]) expect(body).not.toContain(secret);
  });
});
