import { execFileSync, spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EmbeddedPostgres } from '@app/database';
import { LockHeldError } from '@app/process';
import { Client } from 'pg';

describe(EmbeddedPostgres.name, () => {
  let made: string;
  let dataDir: string;
  const running: EmbeddedPostgres[] = [];
  const start = async () => {
    const postgres = await EmbeddedPostgres.start(dataDir);
    running.push(postgres);
    return postgres;
  };
  const query = async (url: string, text: string): Promise<Record<string, unknown>[]> => {
    const client = new Client({ connectionString: url });
    await client.connect();
    try {
      return (await client.query<Record<string, unknown>>(text)).rows;
    } finally {
      await client.end();
    }
  };
  const serverPid = (postgres: EmbeddedPostgres) =>
    Number(readFileSync(join(postgres.folder, 'data', 'postmaster.pid'), 'utf8').split('\n')[0]);
  const exit = (postgres: EmbeddedPostgres) => new Promise<void>((resolve) => postgres.onExit(resolve));

  const newFolder = (): string => {
    const folder = mkdtempSync(join(tmpdir(), 'darkroom-postgres-'));
    chmodSync(folder, 0o711);
    return folder;
  };

  // Copied for each test, which is much faster than making one.
  beforeAll(async () => {
    made = newFolder();
    await (await EmbeddedPostgres.start(made)).stop();
  });
  afterAll(() => rmSync(made, { recursive: true, force: true }));

  beforeEach(() => {
    dataDir = newFolder();
    execFileSync('cp', ['-a', `${made}/.`, dataDir]);
  });

  afterEach(async () => {
    await Promise.all(running.splice(0).map((postgres) => postgres.stop()));
    rmSync(dataDir, { recursive: true, force: true });
  });

  it('checks a random password without delay', async () => {
    const { url } = await start();
    const [{ rolpassword }] = await query(url, 'SELECT rolpassword FROM pg_authid WHERE rolpassword IS NOT NULL');
    expect(rolpassword).toMatch(/^SCRAM-SHA-256\$1:/);
    expect(new URL(url).password).toMatch(/^[0-9a-f]{48}$/);
  });

  it('obeys no setting that the shell has for another server', async () => {
    Object.assign(process.env, { PGSSLMODE: 'require', PGOPTIONS: '-c no_such_setting=on', PGAPPNAME: 'elsewhere' });
    const { url } = await start();
    await expect(query(url, 'SELECT 1 AS one')).resolves.toEqual([{ one: 1 }]);
  });

  it('keeps what was written from one start to the next', async () => {
    const first = await start();
    await query(first.url, 'CREATE TABLE kept AS SELECT 42 AS answer');
    await first.stop();
    const second = await start();
    await expect(query(second.url, 'SELECT answer FROM kept')).resolves.toEqual([{ answer: 42 }]);
  });

  it('comes up with all data after the server was killed', async () => {
    const first = await start();
    await query(first.url, 'CREATE TABLE kept AS SELECT 42 AS answer');
    process.kill(serverPid(first), 'SIGKILL');
    await exit(first);
    await first.stop();
    const second = await start();
    await expect(query(second.url, 'SELECT answer FROM kept')).resolves.toEqual([{ answer: 42 }]);
  });

  it('starts when the id of the killed server now belongs to another program', async () => {
    const first = await start();
    const pidFile = join(first.folder, 'data', 'postmaster.pid');
    const content = readFileSync(pidFile, 'utf8');
    process.kill(serverPid(first), 'SIGKILL');
    await exit(first);
    await first.stop();
    // A process of the same user, which PostgreSQL mistakes for its own.
    const { uid, gid } = statSync(first.folder);
    const other = spawn('sleep', ['600'], { uid, gid });
    writeFileSync(pidFile, content.replace(/^\d+/, String(other.pid)));
    try {
      const second = await start();
      await expect(query(second.url, 'SELECT 1 AS one')).resolves.toEqual([{ one: 1 }]);
    } finally {
      expect(other.kill('SIGKILL')).toBe(true);
    }
  });

  it('starts over when an earlier process died while making the files', async () => {
    const first = await start();
    await first.stop();
    const data = join(first.folder, 'data');
    rmSync(data, { recursive: true });
    writeFileSync(`${data}.new`, 'half a cluster');
    const second = await start();
    expect(existsSync(`${data}.new`)).toBe(false);
    await expect(query(second.url, 'SELECT 1 AS one')).resolves.toEqual([{ one: 1 }]);
  });

  it('rejects a second start on the same folder and says where the first one runs', async () => {
    const { url } = await start();
    await expect(start()).rejects.toThrow(LockHeldError);
    expect(EmbeddedPostgres.runningUrl(dataDir)).toBe(url);
  });

  it('lets nobody in without the password, which only its owner can read', async () => {
    const { url, folder } = await start();
    const wrong = new URL(url);
    wrong.password = 'guess';
    await expect(query(wrong.href, 'SELECT 1')).rejects.toThrow('password authentication failed');
    expect(statSync(join(folder, 'password')).mode & 0o777).toBe(0o600);
    await expect(query(url, 'SHOW fsync')).resolves.toEqual([{ fsync: 'on' }]);
  });
});
