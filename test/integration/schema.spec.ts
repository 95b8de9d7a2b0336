import { readFile } from 'node:fs/promises';
import { migrations } from '../../libs/database/src/migrations';
import type { TestDatabase } from '../support/database';
import { createTestDatabase } from '../support/database';

describe('the schema', () => {
  let database: TestDatabase;

  beforeAll(async () => {
    database = await createTestDatabase();
  });

  afterAll(() => database.drop());

  const drift = async (): Promise<string[]> => {
    const { upQueries } = await database.dataSource.driver.createSchemaBuilder().log();
    return upQueries.map(({ query }) => query);
  };

  it('matches the entities after all migrations', async () => {
    expect(await drift()).toEqual([]);
  });

  it('has its migrations listed in the order of their numbers, in which they run', () => {
    const numbers = migrations.map(({ name }) => Number(/\d{13}$/.exec(name)?.[0]));
    expect(numbers).not.toContain(NaN);
    expect(numbers).toEqual([...numbers].sort((a, b) => a - b));
    expect(new Set(numbers).size).toBe(numbers.length);
  });

  it('has the function insert_tasks as libs/database/src/functions shows it', async () => {
    const definition = (): Promise<unknown> =>
      database.dataSource.query("SELECT pg_get_functiondef('insert_tasks'::regproc) AS text");
    const migrated = await definition();
    await database.dataSource.query(await readFile('libs/database/src/functions/insert-tasks.sql', 'utf8'));
    expect(await definition()).toEqual(migrated);
  });

  it('is reported if it differs', async () => {
    await database.dataSource.query('ALTER TABLE styles ALTER COLUMN name DROP NOT NULL');
    expect(await drift()).not.toEqual([]);
  });
});
