import { createTestDatabase, type TestDatabase } from '../support/database';

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

  it('is reported if it differs', async () => {
    await database.dataSource.query('ALTER TABLE styles ALTER COLUMN name DROP NOT NULL');
    expect(await drift()).not.toEqual([]);
  });
});
