import { randomBytes } from 'node:crypto';
import { assertMigrated, createDataSource, migrate, NotMigratedError } from '@app/database';
import { runMigrations as runQueueMigrations } from 'bullmq';
import { Client } from 'pg';
import type { MigrationInterface, QueryRunner } from 'typeorm';
import { DataSource } from 'typeorm';

class Good1999000000000 implements MigrationInterface {
  name = 'Good1999000000000';
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('CREATE TABLE newcomer (id integer)');
    await queryRunner.query('ALTER TABLE styles ADD COLUMN mood text');
  }
  async down(): Promise<void> {}
}

class Bad1999100000000 implements MigrationInterface {
  name = 'Bad1999100000000';
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('CREATE TABLE latecomer (id integer)');
    await queryRunner.query('ALTER TABLE nowhere ADD COLUMN mood text');
  }
  async down(): Promise<void> {}
}

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

  it('is done once when processes do it at the same time', async () => {
    const applied = await Promise.all([migrate(url), migrate(url), migrate(url)]);
    const [first, ...others] = applied.sort((a, b) => b.length - a.length);
    expect(first.length).toBeGreaterThan(0);
    expect(others).toEqual([[], []]);
    const { rows } = await client.query<{ name: string }>('SELECT name FROM migrations ORDER BY id');
    expect(rows.map(({ name }) => name)).toEqual(first);
  });

  it('changes nothing the second time', async () => {
    await migrate(url);
    const before = await schema();
    expect(await migrate(url)).toEqual([]);
    expect(await schema()).toBe(before);
  });

  it('leaves the schema as it was when one of several migrations fails', async () => {
    await migrate(url);
    const before = await schema();
    const { options } = createDataSource(url);
    const dataSource = await new DataSource({
      ...options,
      migrations: [...(options.migrations as never[]), Good1999000000000, Bad1999100000000],
    }).initialize();
    await expect(dataSource.runMigrations()).rejects.toThrow('nowhere');
    await dataSource.destroy();
    expect(await schema()).toBe(before);
    expect(before).not.toMatch(/newcomer|mood/);
    await expect(assertMigrated(url)).resolves.toBeUndefined();
  });

  it('takes every migration back, and forth again', async () => {
    await migrate(url);
    const before = await schema();
    const dataSource = await createDataSource(url).initialize();
    const names = (await client.query<{ name: string }>('SELECT name FROM migrations')).rows;
    for (const _ of names) await dataSource.undoLastMigration({ transaction: 'all' });
    expect(await schema()).not.toContain('image_tasks');
    await dataSource.runMigrations();
    await dataSource.destroy();
    await runQueueMigrations(client);
    expect(await schema()).toBe(before);
  });
});
