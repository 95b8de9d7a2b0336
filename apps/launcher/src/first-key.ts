import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { createDataSource, newApiKey } from '@app/database';
import { ApiKey, apiKeyScopes, parseApiKeyToken } from '@app/domain';
import { IsNull } from 'typeorm';

/** The key this data folder keeps for its owner. */
export interface KeptKey {
  file: string;
  /** Undefined when the file is gone, or holds a key that was revoked or never belonged to this database. */
  token?: string;
  /** Whether it was made just now. */
  isNew: boolean;
}

/** Makes the first key of a database that has none and keeps its token in `<dataDir>/api-key`, for its owner's eyes only. */
export async function ensureFirstKey(databaseUrl: string, dataDir: string): Promise<KeptKey> {
  const file = join(dataDir, 'api-key');
  const dataSource = await createDataSource(databaseUrl, { poolSize: 1 }).initialize();
  try {
    const keys = dataSource.getRepository(ApiKey);
    if ((await keys.count()) === 0) {
      const { apiKey, token } = newApiKey('first key', apiKeyScopes);
      // The file first: a crash in between leaves a token without a row, and the next start makes another.
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
