import { randomBytes } from 'node:crypto';
import { execFile } from 'node:child_process';
import { type AddressInfo, connect, createServer } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import {
  assertMigrated,
  createDataSource,
  createIndexConcurrently,
  DatabaseUnusableError,
  migrate,
  NotMigratedError,
} from '@app/database';
import { Client } from 'pg';
import { DataSource, type MigrationInterface, type QueryRunner } from 'typeorm';
import { freePort } from '../support/free-port';
import { until } from '../support/until';

class Bad1999100000000 implements MigrationInterface {
  name = 'Bad1999100000000';
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('CREATE TABLE latecomer (id integer)');
    await queryRunner.query('ALTER TABLE nowhere ADD COLUMN mood text');
  }
  async down(): Promise<void> {}
}

class Index1999200000000 implements MigrationInterface {
  name = 'Index1999200000000';
  transaction = false as const;
  async up(queryRunner: QueryRunner): Promise<void> {
    await createIndexConcurrently(queryRunner, 'styles_name_idx', '"styles" ("name")');
  }
  async down(): Promise<void> {}
}

describe('A database that does not answer', () => {
  it.each([migrate, assertMigrated])('is said to be so by %p', async (use) => {
    await expect(use(`postgres://x:y@127.0.0.1:${await freePort()}/x`)).rejects.toMatchObject({
      name: 'DatabaseUnreachableError',
      message: 'The database does not answer (ECONNREFUSED): check DATABASE_URL, and whether it is running.',
    });
  });
});

describe(migrate.name, () => {
  let url: string;
  let client: Client;

  const administrate = async (statement: string): Promise<void> => {
    const admin = new Client({ connectionString: process.env.TEST_DATABASE_URL });
    await admin.connect();
    await admin.query(statement);
    await admin.end();
  };

  beforeEach(async () => {
    const name = `migrate_${randomBytes(6).toString('hex')}`;
    await administrate(`CREATE DATABASE ${name}`);
    const address = new URL(process.env.TEST_DATABASE_URL ?? '');
    address.pathname = name;
    url = address.href;
    client = new Client({ connectionString: url });
    await client.connect();
  });

  afterEach(async () => {
    await client.end();
    await administrate(`DROP DATABASE ${new URL(url).pathname.slice(1)} WITH (FORCE)`);
  });

  /** Every table, column, index and constraint, as text. */
  const schema = async (): Promise<string> => {
    const { rows } = await client.query<{ line: string }>(`
      SELECT table_schema || '.' || table_name || '.' || column_name || ' ' || data_type AS line
      FROM information_schema.columns WHERE table_schema IN ('public', 'bullmq')
      UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname IN ('public', 'bullmq')
      UNION ALL SELECT conname || ' ' || pg_get_constraintdef(oid) FROM pg_constraint
        WHERE connamespace::regnamespace::text IN ('public', 'bullmq')
      ORDER BY line`);
    return rows.map(({ line }) => line).join('\n');
  };

  it('refuses to run without the tables, and runs with them', async () => {
    await expect(assertMigrated(url)).rejects.toThrow(NotMigratedError);
    await migrate(url);
    await expect(assertMigrated(url)).resolves.toBeUndefined();
  });

  it('runs once when several processes start it at the same time', async () => {
    const applied = await Promise.all([migrate(url), migrate(url), migrate(url)]);
    const [first, ...others] = applied.sort((a, b) => b.length - a.length);
    expect(first.length).toBeGreaterThan(0);
    expect(others).toEqual([[], []]);
    const { rows } = await client.query<{ name: string }>('SELECT name FROM migrations ORDER BY id');
    expect(rows.map(({ name }) => name)).toEqual(first);
  });

  it('waits as long as it is told to for a database that is still starting', async () => {
    const { hostname, port, searchParams } = new URL(url);
    const folder = searchParams.get('host');
    let connections = 0;
    const starting = Buffer.from('SFATAL\0C57P03\0Mthe database system is starting up\0\0');
    const head = Buffer.from('E\0\0\0\0');
    head.writeInt32BE(starting.length + 4, 1);
    const server = createServer((socket) => {
      if (++connections <= 2) return void socket.end(Buffer.concat([head, starting]));
      const real = folder === null ? connect(Number(port), hostname) : connect(`${folder}/.s.PGSQL.${port}`);
      socket.pipe(real).pipe(socket);
      for (const each of [socket, real]) each.on('error', () => undefined);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = new URL(url);
    address.searchParams.delete('host');
    address.hostname = '127.0.0.1';
    address.port = String((server.address() as AddressInfo).port);
    const program = join(__dirname, '..', '..', 'dist', 'apps', 'cli', 'src', 'migrate.js');
    const run = (...options: string[]) =>
      promisify(execFile)(process.execPath, [program, ...options], {
        env: { ...process.env, DATABASE_URL: address.href },
      });
    try {
      await expect(run()).rejects.toMatchObject({ stderr: expect.stringContaining('starting up') as string });
      connections = 0;
      expect(await run('--wait=60')).toMatchObject({ stdout: expect.stringContaining('Applied: ') as string });
    } finally {
      server.close();
    }
  });

  it('changes nothing the second time', async () => {
    await migrate(url);
    const before = await schema();
    expect(await migrate(url)).toEqual([]);
    expect(await schema()).toBe(before);
  });

  const runExtra = async (...extra: unknown[]): Promise<void> => {
    const { options } = createDataSource(url);
    const dataSource = await new DataSource({
      ...options,
      migrations: [...(options.migrations as never[]), ...(extra as never[])],
    }).initialize();
    try {
      await dataSource.runMigrations();
    } finally {
      await dataSource.destroy();
    }
  };

  it('leaves nothing of a failed migration', async () => {
    await migrate(url);
    const before = await schema();
    await expect(runExtra(Bad1999100000000)).rejects.toThrow('nowhere');
    expect(await schema()).toBe(before);
    expect(before).not.toMatch(/latecomer|mood/);
    await expect(assertMigrated(url)).resolves.toBeUndefined();
  });

  it('creates an index while the table is written, and replaces an invalid one of an earlier attempt', async () => {
    await migrate(url);
    await client.query('CREATE INDEX styles_name_idx ON styles (id)');
    await client.query(`UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'styles_name_idx'::regclass`);
    await runExtra(Index1999200000000);
    const { rows } = await client.query<{ indexdef: string; valid: boolean }>(
      `SELECT indexdef, indisvalid AS valid FROM pg_indexes JOIN pg_index ON indexrelid = indexname::regclass
       WHERE indexname = 'styles_name_idx'`,
    );
    expect(rows).toEqual([{ indexdef: expect.stringContaining('(name)') as string, valid: true }]);
  });

  describe('a table that another session has locked', () => {
    beforeEach(async () => {
      await client.query(
        'CREATE TABLE migrations (id serial PRIMARY KEY, timestamp bigint NOT NULL, name varchar NOT NULL)',
      );
      await client.query('BEGIN');
      await client.query('LOCK TABLE migrations IN SHARE MODE');
    });

    it('is waited for a few times, and then reported in one sentence', async () => {
      const migrating = migrate(url, { lockTimeoutMs: 100, tries: 2 });
      await expect(migrating).rejects.toThrow(DatabaseUnusableError);
      await expect(migrating).rejects.toThrow(/^A migration waited in vain for a table .*\.$/);
      await client.query('ROLLBACK');
    });

    it('is changed as soon as it is unlocked', async () => {
      const migrating = migrate(url, { lockTimeoutMs: 20_000, tries: 20 });
      await until(async () => {
        const { rows } = await client.query(
          `SELECT FROM pg_locks WHERE NOT granted AND mode = 'RowExclusiveLock'
             AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
        );
        return rows.length > 0;
      }, 'the migration waits');
      await client.query('ROLLBACK');
      await expect(migrating).resolves.toContain('Baseline1796000000000');
    });
  });

  it('repeats a migration that a deadlock has ended', async () => {
    // A sequence counts what is rolled back, too.
    await client.query(
      `CREATE TABLE migrations (id serial PRIMARY KEY, timestamp bigint NOT NULL, name varchar NOT NULL);
       CREATE SEQUENCE attempts;
       CREATE FUNCTION fail_once() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
         IF nextval('attempts') = 1 THEN RAISE EXCEPTION 'deadlock detected' USING ERRCODE = '40P01'; END IF;
         RETURN NEW;
       END $$;
       CREATE TRIGGER fail_once BEFORE INSERT ON migrations FOR EACH ROW EXECUTE FUNCTION fail_once()`,
    );
    await expect(migrate(url)).resolves.toContain('Baseline1796000000000');
  });

  it('refuses tables of a version that had image tasks in one sentence, and does not change them', async () => {
    await client.query(
      `CREATE TABLE migrations (id serial PRIMARY KEY, timestamp bigint NOT NULL, name varchar NOT NULL);
       INSERT INTO migrations (timestamp, name) VALUES (1795200000000, 'Initial1795200000000')`,
    );
    const before = await schema();
    for (const use of [migrate, assertMigrated])
      await expect(use(url)).rejects.toThrow(/^The database has the tables of an earlier version .*--carry-over.*\.$/);
    expect(await schema()).toBe(before);
  });
});
