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

  it('is after all migrations what the entities say', async () => {
    expect(await drift()).toEqual([]);
  });

  it('is found to differ when it does', async () => {
    await database.dataSource.query('ALTER TABLE styles ALTER COLUMN name DROP NOT NULL');
    expect(await drift()).not.toEqual([]);
  });
});
