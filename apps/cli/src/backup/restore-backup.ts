import { createWriteStream, existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import type { Config } from '@app/config';
import { assertEmpty, loadTables } from '@app/database';
import { ModelStore } from '@app/model-store';
import { makeFolder } from '@app/process';
import { openImageStorage } from '@app/storage';
import { CliError } from '../run-program';
import { atATime, type BackedUpModel, filesFolder, keyFile, tablesFolder, type VerifiedBackup } from './backup-folder';
import { isKept, rowCount } from './write-backup';

/** Content of the backup that was restored, and what the user has to do. */
export interface RestoreReport {
  made_at: string;
  rows: number;
  files: number;
  /** Not installed here, or with another content. */
  missing_models: BackedUpModel[];
}

/**
 * @throws CliError unless pictures, weights and the key have an empty place to go to. Without an external database the
 * whole data folder must be empty, since the embedded one is made in it.
 */
export async function assertEmptyPlace(config: Config): Promise<void> {
  const { dataDir, databaseUrl } = config;
  const names = existsSync(dataDir) ? (await readdir(dataDir)).filter((name) => name !== 'lost+found') : [];
  if (!databaseUrl && names.length > 0)
    throw new CliError(
      `The data folder ${dataDir} is not empty: a backup is restored only into a new one, so set DATA_DIR to another folder. Nothing was changed.`,
    );
  if (names.includes(keyFile))
    throw new CliError(
      `The data folder ${dataDir} has a file ${keyFile} already: set DATA_DIR to another folder. Nothing was changed.`,
    );
  for await (const { key } of openImageStorage(config).list())
    if (isKept(key))
      throw new CliError(
        `The storage has files already (${key}): a backup is restored only into an empty one. Nothing was changed.`,
      );
}

/** Restores files first, rows last: a service that finds rows finds their files too. The place must be empty. */
export async function restoreBackup(
  config: Config,
  databaseUrl: string,
  backup: VerifiedBackup,
): Promise<RestoreReport> {
  await assertEmpty(databaseUrl);
  const { manifest } = backup;
  const storage = openImageStorage(config);
  const keys = backup.keys();
  try {
    await Readable.from(keys).forEach(
      (key: string) => storage.write(key, backup.read(`${filesFolder}/${key}`)),
      atATime,
    );
    await restoreKey(config, backup);
    await loadTables(databaseUrl, manifest.database, (table) => {
      const packed = backup.read(`${tablesFolder}/${table}.gz`);
      const rows = packed.pipe(createGunzip());
      packed.on('error', (error) => rows.destroy(error));
      return rows;
    });
  } catch (error) {
    throw new CliError(
      `The restore did not finish (${(error as Error).message}). Remove what it has written, the data folder and the tables, before you run it again.`,
    );
  }
  return {
    made_at: manifest.made_at,
    rows: rowCount(manifest.database),
    files: keys.length,
    missing_models: await missingModels(config, manifest.models),
  };
}

async function restoreKey({ dataDir }: Config, backup: VerifiedBackup): Promise<void> {
  if (!backup.has(keyFile)) return;
  makeFolder(dataDir, 0o700);
  const target = createWriteStream(join(dataDir, keyFile), { flags: 'wx', mode: 0o600 });
  await pipeline(backup.read(keyFile), target);
}

async function missingModels({ modelsDir }: Config, wanted: readonly BackedUpModel[]): Promise<BackedUpModel[]> {
  const installed = await new ModelStore(modelsDir).list();
  return wanted.filter(({ name, hash }) => !installed.some((model) => model.name === name && model.hash === hash));
}
