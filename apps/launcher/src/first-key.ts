import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { ApiKey, apiKeyScopes, newApiKey, newSignInCode, parseApiKeyToken, SignInCode } from '@app/domain';
import { createDataSource } from '@app/database';
import { type DataSource, IsNull, LessThan } from 'typeorm';

/** The key stored in the data folder. */
export interface StoredKey {
  file: string;
  /** Undefined when the file is gone, or its key was revoked or belongs to another database. */
  token?: string;
  isNew: boolean;
  /** Signs the first browser in that sends it; there is one if there is a token. */
  signInCode?: string;
}

/** Makes the first key of a database without one; its token goes to `<dataDir>/api-key`, readable only by its owner. */
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
      return { file, token, isNew: true, signInCode: await issueSignInCode(dataSource, token) };
    }
    const token = existsSync(file) ? readFileSync(file, 'utf8').trim() : '';
    const prefix = parseApiKeyToken(token)?.prefix;
    const isValid = prefix !== undefined && (await keys.existsBy({ prefix, revokedAt: IsNull() }));
    if (!isValid) return { file, isNew: false };
    return { file, token, isNew: false, signInCode: await issueSignInCode(dataSource, token) };
  } finally {
    await dataSource.destroy();
  }
}

async function issueSignInCode(dataSource: DataSource, token: string): Promise<string> {
  const codes = dataSource.getRepository(SignInCode);
  await codes.delete({ expiresAt: LessThan(new Date()) });
  const { code, row } = newSignInCode(token);
  await codes.insert(row);
  return code;
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
