import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { ApiKey, newApiKey, parseApiKeyToken, sameSecret, Task, WebhookDelivery } from '@app/domain';
import { runKeys } from '../../apps/cli/src/keys-command';
import { createTestDatabase, type TestDatabase } from '../support/database';
import { manyTasks } from '../support/many-tasks';

const main = resolve(__dirname, '..', '..', 'dist', 'apps', 'cli', 'src', 'keys.js');

interface Outcome {
  code: number;
  stdout: string;
  stderr: string;
}

/** Runs the program in a process of its own, as `npm run keys` does. */
const inProcess = (env: NodeJS.ProcessEnv, ...args: string[]): Promise<Outcome> =>
  new Promise((done) => {
    execFile(process.execPath, [main, ...args], { env: { PATH: process.env.PATH, ...env } }, (error, stdout, stderr) =>
      done({ code: error ? Number(error.code) : 0, stdout, stderr }),
    );
  });

describe('npm run keys', () => {
  let database: TestDatabase;
  const keys = async (...args: string[]): Promise<Outcome> => {
    const [stdout, stderr]: string[][] = [[], []];
    const code = await runKeys(args, {
      env: { DATABASE_URL: database.url },
      stdout: { write: (text) => stdout.push(text) },
      stderr: { write: (text) => stderr.push(text) },
    });
    return { code, stdout: stdout.join(''), stderr: stderr.join('') };
  };
  const stored = (): Promise<ApiKey[]> => database.dataSource.getRepository(ApiKey).find();
  /** A key that the command under test did not make. */
  const camera = async (): Promise<{ id: string; token: string }> => {
    const { apiKey, token } = newApiKey('camera', ['read', 'write']);
    await database.dataSource.manager.save(apiKey);
    return { id: apiKey.id, token };
  };
  const field = (stdout: string, name: string): string =>
    new RegExp(`^${name} +(.*)$`, 'm').exec(stdout)?.[1] ?? `no ${name}`;

  beforeEach(async () => {
    database = await createTestDatabase();
  });
  afterEach(() => database.drop());

  it('makes a key whose token is shown but not stored', async () => {
    const env = { DATABASE_URL: database.url };
    const { stdout } = await inProcess(env, 'create', '--name', 'camera', '--scopes', 'read');
    const [key] = await stored();
    const token = parseApiKeyToken(field(stdout, 'token'));
    expect(token).toBeDefined();
    expect(sameSecret(token!.secretHash, key.secretHash)).toBe(true);
    expect(key).toMatchObject({ id: field(stdout, 'id'), name: 'camera', scopes: ['read'], revokedAt: null });
    expect(field(stdout, 'webhook secret')).toBe(key.webhookSecret);
  });

  it('lists keys without their secrets and shows the one that signs webhooks', async () => {
    const { token } = await camera();
    const [key] = await stored();
    const { stdout: list } = await keys('list');
    expect(list).toMatch(new RegExp(`${key.id} +dr_${key.prefix} +camera +- +read,write +engine +off +`));
    expect(list).not.toContain(token);
    expect(list).not.toContain(key.webhookSecret);
    expect(field((await keys('show', key.id)).stdout, 'webhook secret')).toBe(key.webhookSecret);
  });

  it('makes keys of one account, and names the one that a key is alone in', async () => {
    const { id } = await camera();
    const { stdout } = await keys('account', id, 'studio');
    expect(stdout).toContain('is "studio"');
    expect((await keys('create', '--name', 'web', '--account', 'studio')).code).toBe(0);
    const [first, second] = await stored();
    expect([second.account, second.accountId]).toEqual(['studio', first.id]);
    expect((await keys('account', id, 'atelier')).code).not.toBe(0);
  });

  it('revokes a key by its id or prefix, once', async () => {
    await camera();
    const [{ prefix }] = await stored();
    await expect(keys('revoke', `dr_${prefix}`)).resolves.toMatchObject({
      code: 0,
      stdout: 'The key "camera" is revoked.\n',
    });
    const [{ revokedAt }] = await stored();
    expect(revokedAt).toBeInstanceOf(Date);
    await expect(keys('revoke', prefix)).resolves.toMatchObject({
      stdout: expect.stringContaining('was revoked already') as string,
    });
    await expect(stored()).resolves.toMatchObject([{ revokedAt }]);
  });

  it('cancels what a key has waiting: stop leaves the key valid, revoke does not', async () => {
    const { id } = await camera();
    const queue = (prefix: string, count: number) =>
      database.dataSource.query(
        `WITH ${manyTasks(count, { id: '$1 || i', owner: '$2', createdAt: 'now()' })}
         INSERT INTO generations (id, owner_id, webhook)
         SELECT $1 || i, $2, 'http://127.0.0.1:1/' FROM generate_series(1, ${count}) AS i`,
        [prefix, id],
      );
    const waiting = () => database.dataSource.manager.countBy(Task, { ownerId: id, status: 'queued' });
    await queue('a', 3);
    await expect(keys('stop', id)).resolves.toMatchObject({
      code: 0,
      stdout: '3 Generations and Prompts were canceled.\n',
      stderr: '',
    });
    expect([await waiting(), (await stored())[0].revokedAt]).toEqual([0, null]);
    await queue('b', 1);
    await expect(keys('revoke', id)).resolves.toMatchObject({
      stdout: 'The key "camera" is revoked. 1 Generation or Prompt was canceled.\n',
    });
    expect(await waiting()).toBe(0);
    expect(await database.dataSource.manager.countBy(WebhookDelivery, { ownerId: id })).toBe(4);
  });

  it('calls what a key signs in with its token, and nothing else of it a secret but that of its webhooks', async () => {
    const { stdout } = await keys('--help');
    expect(stdout).toMatch(/rotate .*new token/);
    expect(stdout.match(/(?<!webhook[ -])secret/g)).toBeNull();
  });

  it('treats an id that begins with a dash as an id', async () => {
    await expect(keys('revoke', '-abc')).resolves.toMatchObject({
      code: 1,
      stderr: expect.stringContaining('There is no API key "-abc"') as string,
    });
  });

  it('takes no name that is a command to a terminal, and shows none', async () => {
    for (const name of ['shop\x1b[2J', 'shop\x9b2J', 'a\rb', 'a\nb', 'a\x07'])
      await expect(keys('create', '--name', name)).resolves.toMatchObject({
        code: 2,
        stderr: expect.stringContaining('control character') as string,
      });
    expect(await stored()).toEqual([]);
    const { id } = await camera();
    await database.dataSource.manager.update(ApiKey, { id }, { name: 'old\x1b]0;title\x07\x9b2J' });
    for (const args of [['list'], ['show', id], ['revoke', id]]) {
      const { stdout } = await keys(...args);
      expect(stdout).toContain('old\uFFFD]0;title');
      expect(stdout.replaceAll('\n', '')).not.toMatch(/\p{Cc}/u);
    }
  });

  it('makes a sandbox key', async () => {
    const { stdout } = await keys('create', '--name', 'tests', '--sandbox');
    const [key] = await stored();
    expect(key.sandbox).toBe(true);
    expect(field((await keys('show', field(stdout, 'id'))).stdout, 'drawn by')).toBe('sandbox');
  });

  it('sets and resets limits', async () => {
    const { id } = await camera();
    await keys(
      'limit',
      id,
      '--rate',
      '60',
      '--queued',
      '0',
      '--concurrent',
      '2',
      '--storage',
      '500',
      '--retention',
      '30',
    );
    const limits = { rateLimitPerMinute: 60, maxQueued: 0, maxConcurrent: 2, maxStorageMb: 500, retentionDays: 30 };
    await expect(stored()).resolves.toMatchObject([limits]);
    const { stdout } = await keys('limit', id, '--rate', 'default', '--retention', 'keep');
    await expect(stored()).resolves.toMatchObject([{ ...limits, rateLimitPerMinute: null, retentionDays: null }]);
    expect(stdout).toBe(
      'requests/minute default\nqueued          no limit\nconcurrent      2\nstorage         500 MB\nkept for        ever\nafter training  uploads are deleted\nfilter          off\n',
    );
    await keys('limit', id, '--training-uploads', 'keep');
    await expect(stored()).resolves.toMatchObject([{ keepTrainingUploads: true, maxQueued: 0 }]);
    await keys('limit', id, '--filter', 'block');
    await expect(stored()).resolves.toMatchObject([{ filter: 'block', keepTrainingUploads: true }]);
    await expect(keys('limit', id, '--training-uploads', 'yes')).resolves.toMatchObject({ code: 2 });
    await expect(keys('limit', id, '--queued', '-1')).resolves.toMatchObject({ code: 2 });
    await expect(keys('limit', id, '--retention', '0')).resolves.toMatchObject({ code: 2 });
  });

  it('rotates the secret of a key, and keeps the previous one for a day or the given time', async () => {
    const { id, token } = await camera();
    const { secretHash: before } = parseApiKeyToken(token)!;
    const hashOf = (stdout: string) => parseApiKeyToken(field(stdout, 'token'))!;
    const rotated = await keys('rotate', id);
    const [key] = await stored();
    expect(hashOf(rotated.stdout).prefix).toBe(key.prefix);
    expect(key.accepts(hashOf(rotated.stdout).secretHash)).toBe(true);
    expect(key.accepts(before)).toBe(true);
    const inDays = (days: number) => new Date(Date.now() + days * 86_400_000);
    expect(key.accepts(before, inDays(0.99))).toBe(true);
    expect(key.accepts(before, inDays(1.01))).toBe(false);
    const again = await keys('rotate', id, '--grace', '0');
    const [now] = await stored();
    expect(now.accepts(hashOf(again.stdout).secretHash)).toBe(true);
    expect(now.accepts(hashOf(rotated.stdout).secretHash)).toBe(false);
  });

  it('rotates the secret that signs webhooks', async () => {
    const { id } = await camera();
    const [{ webhookSecret: before }] = await stored();
    const { stdout } = await keys('rotate-webhook-secret', id);
    const [key] = await stored();
    expect(key.signingSecrets()).toEqual([field(stdout, 'webhook secret'), before]);
    expect(field(stdout, 'webhook secret')).not.toBe(before);
  });

  it.each([['limit', '--rate', '60'], ['rotate'], ['rotate-webhook-secret']])(
    'changes nothing of a revoked key: %s',
    async (command, ...options) => {
      const { id } = await camera();
      await keys('revoke', id);
      const before = await stored();
      await expect(keys(command, id, ...options)).resolves.toMatchObject({
        code: 1,
        stderr: 'The key is revoked; make a new one.\n',
      });
      await expect(stored()).resolves.toEqual(before);
    },
  );

  it('says everything as JSON too', async () => {
    const json = async (...args: string[]) =>
      JSON.parse((await keys(...args, '--json')).stdout) as Record<string, unknown>;
    const { id, token } = await json('create', '--name', 'camera');
    expect(token).toMatch(/^dr_/);
    const [listed] = (await json('list')) as unknown as Record<string, unknown>[];
    expect(listed).toMatchObject({ id, name: 'camera', scopes: ['write'], revoked_at: null });
    expect(await json('show', String(id))).toMatchObject({
      id,
      webhook_secret: expect.stringMatching(/^whsec_/) as string,
    });
    expect(await json('limit', String(id), '--retention', '1')).toMatchObject({ retention_days: 1 });
    expect((await keys('show', String(id))).stdout).toMatch(/^kept for +1 day$/m);
    expect(await json('rotate', String(id))).toMatchObject({ token: expect.stringMatching(/^dr_/) as string });
    expect(await json('stop', String(id))).toEqual({ canceled: 0 });
    expect(await json('revoke', String(id))).toEqual({ id, canceled: 0 });
  });

  it('says that a data folder is not there, and makes none', async () => {
    const folder = join(await mkdtemp(join(tmpdir(), 'darkroom-keys-')), 'nowhere');
    const outcome = await inProcess({ DATA_DIR: folder }, 'list');
    expect(outcome).toMatchObject({ code: 1, stderr: expect.stringContaining(`no data folder ${folder}`) as string });
    expect(existsSync(folder)).toBe(false);
  });

  it.each([
    [['create'], '--name'],
    [['create', '--name', ' '], '1 to 200 characters'],
    [['create', '--name', 'x', '--scopes', 'read,all'], 'read, write, admin'],
  ])('rejects %j', async (args, reason) => {
    await expect(keys(...args)).resolves.toMatchObject({ code: 2, stderr: expect.stringContaining(reason) as string });
    await expect(stored()).resolves.toEqual([]);
  });
});
