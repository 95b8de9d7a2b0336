import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EmbeddedPostgres, migrate } from '@app/database';
import { Client } from 'pg';
import { startTestApi, type TestApi, type TestKey } from '../support/api';

/** Statements in the server's own log: one line for each message that the server receives. */
describe('statements', () => {
  const folder = mkdtempSync(join(tmpdir(), 'darkroom-statements-'));
  const shared = process.env.TEST_DATABASE_URL;
  let postgres: EmbeddedPostgres;
  let api: TestApi;

  beforeAll(async () => {
    chmodSync(folder, 0o711);
    const settings = { fsync: 'off', log_statement: 'all', log_line_prefix: '%a ', max_connections: '100' };
    postgres = await EmbeddedPostgres.start(folder, { settings });
    const client = new Client({ connectionString: postgres.url });
    await client.connect();
    await client.query(`CREATE DATABASE ${process.env.TEST_DATABASE_TEMPLATE}`);
    await client.end();
    const template = new URL(postgres.url);
    template.pathname = process.env.TEST_DATABASE_TEMPLATE ?? '';
    await migrate(template.href);
    process.env.TEST_DATABASE_URL = postgres.url;
    api = await startTestApi({ RATE_LIMIT_PER_MINUTE: '600', MAX_QUEUED_PER_KEY: '1000' });
  });

  afterAll(async () => {
    await api.close();
    await postgres.stop();
    process.env.TEST_DATABASE_URL = shared;
    rmSync(folder, { recursive: true, force: true });
  });

  // Workers are woken after the answer, by one statement for all that was posted meanwhile: it is not of a request.
  const logged = (): string[] =>
    readFileSync(join(folder, 'logs', 'postgres.log'), 'utf8')
      .split('\n')
      .filter((line) => /^darkroom-(api|intake) LOG: {2}(statement|execute [^:]+): /.test(line));

  /** The minimum of several attempts, because the processes run queries of their own in between. */
  async function fewest(request: (key: TestKey) => Promise<unknown>, key?: TestKey): Promise<number> {
    const counts: number[] = [];
    for (let tries = 0; tries < 5; tries++) {
      const caller = key ?? (await api.createKey());
      const before = logged().length;
      await request(caller);
      counts.push(logged().length - before);
    }
    return Math.min(...counts);
  }

  let number = 0;
  const post = (key: TestKey, headers: Record<string, string> = {}) =>
    api.request<{ id: string }>('POST', '/v1/sd/text-to-image', { key, body: { prompt: 'a star' }, headers });

  // One of them keeps room in the key's storage for the pictures that are to come.
  it('of a POST are at most 11, for a new key with all limits', async () => {
    expect((await post(await api.createKey())).status).toBe(201);
    expect(await fewest(post)).toBeLessThanOrEqual(11);
    expect(await fewest(post, await api.createKey())).toBeLessThanOrEqual(10);
  });

  it('of a POST with an Idempotency-Key are at most 17, one of them before the request takes a connection', async () => {
    expect(await fewest((key) => post(key, { 'idempotency-key': String(++number) }))).toBeLessThanOrEqual(17);
  });

  it('of a GET are at most 3', async () => {
    const key = await api.createKey();
    const { id } = (await post(key)).body;
    const get = () => api.request('GET', `/v1/sd/text-to-image/${id}`, { key });
    expect(await fewest(get, key)).toBeLessThanOrEqual(3);
  });
});
