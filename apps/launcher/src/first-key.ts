import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { createDataSource, newApiKey } from '@app/database';
import { ApiKey, apiKeyScopes, parseApiKeyToken } from '@app/domain';
import { IsNull } from 'typeorm';

/** The key stored in the data folder. */
export interface StoredKey {
  file: string;
  /** Undefined when the file is gone, or its key was revoked or belongs to another database. */
  token?: string;
  /** Whether it was just made. */
  isNew: boolean;
}

/** Makes the first key of a database that has none and stores its token in `<dataDir>/api-key`, readable only by its owner. */
export async function ensureFirstKey(databaseUrl: string, dataDir: string): Promise<StoredKey> {
  const file = join(dataDir, 'api-key');
  const dataSource = await createDataSource(databaseUrl, { poolSize: 1 }).initialize();
  try {
    const keys = dataSource.getRepository(ApiKey);
    if ((await keys.count()) === 0) {
      const { apiKey, token } = newApiKey('first key', apiKeyScopes);
      // The file first: after a crash in between there is a token without a row, and the next start makes another.
      writePrivate(file, token);
      await keys.save(apiKey);
      return { file, token, isNew: true };
    }
    const token = existsSync(file) ? readFileSync(file, 'utf8').trim() : '';
    const prefix = parseApiKeyToken(token)?.prefix;
    const isValid = prefix !== undefined && (await keys.existsBy({ prefix, revokedAt: IsNull() }));
    return { file, isNew: false, ...(isValid && { token }) };
  } finally {
    await dataSource.destroy();
  }
}

function writePrivate(file: string, text: string): void {
  const unfinished = `${file}.new`;
  rmSync(unfinished, { force: true });
  const descriptor = openSync(unfinished, 'wx', 0o600);
  writeSync(descriptor, `${text}\n`);
  fsyncSync(descriptor);
  closeSync(descriptor);
  renameSync(unfinished, file);
}
