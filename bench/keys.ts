import { newApiKey } from '@app/domain';
import { createDataSource } from '@app/database';
import { ApiKey } from '@app/domain';

/** Makes API keys in a database. @returns their tokens */
export async function createKeys(databaseUrl: string, count: number): Promise<string[]> {
  const dataSource = await createDataSource(databaseUrl, { poolSize: 1 }).initialize();
  try {
    const made = Array.from({ length: count }, (_, i) => newApiKey(`bench ${i}`, ['read', 'write']));
    await dataSource.manager.insert(
      ApiKey,
      made.map(({ apiKey }) => apiKey),
    );
    return made.map(({ token }) => token);
  } finally {
    await dataSource.destroy();
  }
}
