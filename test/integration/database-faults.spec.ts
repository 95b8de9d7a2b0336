import { randomBytes } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { assertMigrated, createDataSource, DatabaseUnusableError, migrate, NotificationListener } from '@app/database';
import { Client } from 'pg';
import { DataSource } from 'typeorm';
import { insertKey, startTestApi, type TestApi } from '../support/api';
import { pgBouncer, startPgBouncer } from '../support/pg-bouncer';
import { until } from '../support/until';
import { ofTest } from '../support/of-suite';

const ifPgBouncer = pgBouncer ? describe : describe.skip;

describe('A database that fails', () => {
  const api = ofTest(startTestApi);
  const key = ofTest(() => api.createKey());

  const set = (setting: string) => api.dataSource.query(`ALTER DATABASE ${databaseOf(api)} SET ${setting}`);
  /** New connections use the new setting. */
  const dropConnections = async (): Promise<void> => {
    // Not one of the service's own connections, which would end before it ended all others.
    const client = new Client({ connectionString: api.config.databaseUrl });
    await client.connect();
    await client.query(
      'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
    );
    await client.end();
  };
  const create = () => api.request('POST', '/v1/sd/text-to-image', { key, body: { prompt: 'a star' } });
  const ready = () => api.request('GET', '/health/ready');

  it('makes the api not ready while it is read-only, and a POST a 503; afterwards all works again', async () => {
    expect((await ready()).status).toBe(200);
    await set('default_transaction_read_only = on');
    await dropConnections();
    const refused = await until(async () => {
      const { status, headers } = await create();
      return status === 503 && headers.get('retry-after');
    }, 'a POST is refused');
    expect(Number(refused)).toBeGreaterThan(0);
    await until(async () => (await ready()).status === 503, 'it is not ready');
    expect((await ready()).text).toContain('database');
    expect((await api.request('GET', '/health/live')).status).toBe(200);
    const client = new Client({ connectionString: api.config.databaseUrl });
    await client.connect();
    await client.query('SET default_transaction_read_only = off');
    await client.query(`ALTER DATABASE ${databaseOf(api)} RESET default_transaction_read_only`);
    await client.end();
    await dropConnections();
    await until(async () => (await ready()).status === 200, 'it is ready again');
    await until(async () => (await create()).status === 201, 'it takes work');
  });

  it('answers 503 when a statement was canceled, for example because it took too long', async () => {
    const holder = new Client({ connectionString: api.config.databaseUrl });
    await holder.connect();
    await holder.query('BEGIN');
    await holder.query('LOCK TABLE generations IN ACCESS EXCLUSIVE MODE');
    try {
      let hasAnswer = false;
      const ask = () => create().finally(() => (hasAnswer = true));
      let asked = ask();
      // As an operator who cancels a statement would.
      await until(async () => {
        // A connection that the test before had dropped may have answered.
        if (hasAnswer) {
          hasAnswer = false;
          asked = ask();
        }
        const { rows } = await holder.query(
          `SELECT pg_cancel_backend(pid) FROM pg_stat_activity
           WHERE datname = current_database() AND wait_event_type = 'Lock' AND application_name = 'darkroom-api'`,
        );
        return rows.length > 0;
      }, 'the query was canceled');
      const { status, body } = await asked;
      expect([status, body.code]).toEqual([503, 'ServiceUnavailable']);
    } finally {
      await holder.query('ROLLBACK');
      await holder.end();
    }
  });
});

describe('A database that cannot be used', () => {
  const made: string[] = [];
  const administrate = async (statement: string, database?: string): Promise<void> => {
    const admin = new Client({ connectionString: urlOf(database) });
    await admin.connect();
    await admin.query(statement);
    await admin.end();
  };
  const urlOf = (database?: string, user?: string): string => {
    const address = new URL(process.env.TEST_DATABASE_URL ?? '');
    if (database) address.pathname = database;
    if (user) Object.assign(address, { username: user, password: user });
    return address.href;
  };
  const newDatabase = async (options = ''): Promise<string> => {
    const name = `faults_${randomBytes(6).toString('hex')}`;
    await administrate(`CREATE DATABASE ${name} ${options}`);
    made.push(name);
    return name;
  };

  afterAll(async () => {
    for (const name of made) await administrate(`DROP DATABASE ${name} WITH (FORCE)`);
  });

  /** Runs `npm run migrate`, and starts the api and the worker. */
  const refusals = async (url: string): Promise<void> => {
    for (const look of [migrate, assertMigrated]) await expect(look(url)).rejects.toThrow(DatabaseUnusableError);
  };

  it('is rejected for an encoding other than UTF8', async () => {
    const url = urlOf(
      await newDatabase(`TEMPLATE template0 ENCODING 'LATIN1' LOCALE_PROVIDER libc LC_COLLATE 'C' LC_CTYPE 'C'`),
    );
    await refusals(url);
    await expect(migrate(url)).rejects.toThrow(/^The database has the encoding LATIN1, .*UTF8.*\.$/);
  });

  it('is rejected for a server older than 14', async () => {
    const name = await newDatabase();
    // No older server is here: only its answer is.
    const query = Reflect.get(Client.prototype, 'query') as (...parameters: unknown[]) => unknown;
    const answers = jest.spyOn(Client.prototype, 'query').mockImplementation(function (
      this: Client,
      ...parameters: unknown[]
    ) {
      return String(parameters[0]).includes('server_version_num')
        ? Promise.resolve({ rows: [{ version: 130_012, shown: '13.12', encoding: 'UTF8' }] })
        : query.apply(this, parameters);
    });
    await refusals(urlOf(name));
    await expect(migrate(urlOf(name))).rejects.toThrow('The database is PostgreSQL 13.12; 14 or later is needed.');
    answers.mockRestore();
  });

  it('is used when a newer version has only added to it, with a warning', async () => {
    const name = await newDatabase();
    await migrate(urlOf(name));
    await administrate(
      `INSERT INTO migrations (timestamp, name) VALUES (1999000000000, 'Future1999000000000');
       ALTER TABLE tasks ADD COLUMN mood varchar NOT NULL DEFAULT 'calm'; CREATE TABLE moods (id integer)`,
      name,
    );
    expect(await migrate(urlOf(name))).toEqual([]);
    const warn = jest.fn();
    await assertMigrated(urlOf(name), warn);
    expect(warn).toHaveBeenCalledWith(expect.stringContaining('Future1999000000000'));
    const api = await startTestApi({ DATABASE_URL: urlOf(name) });
    try {
      const key = await insertKey(api.app.get(DataSource));
      const path = '/v1/sd/text-to-image';
      const { status, body } = await api.request('POST', path, { key, body: { prompt: 'a star' } });
      expect(status).toBe(201);
      expect((await api.request('GET', `${path}/${String(body.id)}`, { key })).body).toEqual(body);
    } finally {
      await api.close();
    }
  });

  it('is rejected when a newer version says that this one may not run', async () => {
    const name = await newDatabase();
    await migrate(urlOf(name));
    await administrate(`INSERT INTO migrations (timestamp, name) VALUES (1999000000000, 'Future1999000000000')`, name);
    await administrate(`UPDATE oldest_builds SET knows = 'Future1999000000000'`, name);
    await refusals(urlOf(name));
    await expect(migrate(urlOf(name))).rejects.toThrow(/newer version of Darkroom \(Future1999000000000 .*\.$/);
  });

  it('is rejected when its user may not create tables', async () => {
    const name = await newDatabase();
    const user = `reader_${randomBytes(4).toString('hex')}`;
    await administrate(`CREATE ROLE ${user} LOGIN PASSWORD '${user}'`);
    try {
      await refusals(urlOf(name, user));
      await expect(migrate(urlOf(name, user))).rejects.toThrow(/^The user of DATABASE_URL may not make .*\.$/);
    } finally {
      await administrate(`DROP ROLE ${user}`);
    }
  });

  it('is rejected by migrate when it is read-only', async () => {
    const name = await newDatabase();
    await administrate(`ALTER DATABASE ${name} SET default_transaction_read_only = on`);
    await expect(migrate(urlOf(name))).rejects.toThrow(/replica, or take back default_transaction_read_only .*\.$/);
  });

  ifPgBouncer('behind PgBouncer', () => {
    it.each(['transaction', 'statement'] as const)('is rejected behind a pooler in %s mode', async (mode) => {
      const name = await newDatabase();
      for (const settings of ['', 'server_round_robin = 1', 'default_pool_size = 1']) {
        const bouncer = await startPgBouncer(urlOf(name), mode, settings);
        try {
          await refusals(bouncer.url);
          await expect(migrate(bouncer.url)).rejects.toThrow(/^DATABASE_URL leads to a pooler in transaction or .*\.$/);
        } finally {
          await bouncer.stop();
        }
      }
    });

    it('is migrated behind a pooler in session mode', async () => {
      const name = await newDatabase();
      const bouncer = await startPgBouncer(urlOf(name), 'session', 'ignore_startup_parameters = options');
      try {
        await migrate(bouncer.url);
        await expect(assertMigrated(bouncer.url)).resolves.toBeUndefined();
        const dataSource = await createDataSource(bouncer.url, { statementTimeoutMs: 2_000 }).initialize();
        await expect(dataSource.query('SELECT pg_sleep(60)')).rejects.toThrow('statement timeout');
        await dataSource.destroy();
      } finally {
        await bouncer.stop();
      }
    });
  });
});

describe('A server that does not answer', () => {
  it('causes a time-out, and its connection is not used again', async () => {
    // Far more than a small statement takes on a busy machine, and far less than the slow ones.
    const limits = { poolSize: 1, queryTimeoutMs: 2_000 };
    const dataSource = await createDataSource(process.env.TEST_DATABASE_URL ?? '', limits).initialize();
    try {
      await expect(dataSource.query('SELECT pg_sleep(60)')).rejects.toThrow('Query read timeout');
      await expect(dataSource.query('SELECT 1 AS one')).resolves.toEqual([{ one: 1 }]);
      const working = dataSource.transaction((manager) => manager.query('SELECT pg_sleep(60)'));
      await expect(working).rejects.toThrow('Query read timeout');
      await expect(dataSource.query('SELECT 2 AS two')).resolves.toEqual([{ two: 2 }]);
    } finally {
      await dataSource.destroy();
    }
  });
});

describe(NotificationListener.name, () => {
  it('leaves no connection behind that was being opened when it was closed', async () => {
    const name = `listener_${randomBytes(6).toString('hex')}`;
    const admin = new Client({ connectionString: process.env.TEST_DATABASE_URL });
    await admin.connect();
    await admin.query(`CREATE DATABASE ${name}`);
    const address = new URL(process.env.TEST_DATABASE_URL ?? '');
    address.pathname = name;
    const count = async (): Promise<number> =>
      (await admin.query(`SELECT FROM pg_stat_activity WHERE datname = $1`, [name])).rows.length;
    try {
      for (const turns of [0, 1, 2, 3, 5, 10, 20]) {
        const listener = new NotificationListener(address.href, { darkroom_test: () => undefined }, () => undefined);
        const started = listener.start().catch(() => undefined);
        // In another state of its opening each time.
        for (let turn = 0; turn < turns; turn++) await setImmediate();
        await listener.close();
        await started;
      }
      await until(async () => (await count()) === 0, 'no connection is left');
    } finally {
      await admin.query(`DROP DATABASE ${name} WITH (FORCE)`);
      await admin.end();
    }
  });
});

function databaseOf(api: TestApi): string {
  return new URL(api.config.databaseUrl ?? '').pathname.slice(1);
}
