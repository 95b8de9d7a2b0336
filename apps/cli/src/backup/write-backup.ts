import { createReadStream, existsSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { createGzip } from 'node:zlib';
import type { Config } from '@app/config';
import { type DumpContents, dumpTables } from '@app/database';
import { ModelStore } from '@app/model-store';
import { type ImageStorage, openImageStorage, type StoredObject } from '@app/storage';
import { atATime, type BackedUpModel, filesFolder, keyFile, NewBackup, tablesFolder } from './backup-folder';

/** Content of a backup, to tell the user. */
export interface BackupReport {
  folder: string;
  made_at: string;
  rows: number;
  files: number;
  bytes: number;
  models: number;
}

/**
 * Backs up the database, pictures, weights and the first key, while the service may run. Files are copied before the
 * rows are read and again afterwards: a file is there before the row that names it, and one that is deleted in the
 * meantime has been copied.
 */
export async function writeBackup(config: Config, databaseUrl: string, folder: string): Promise<BackupReport> {
  const backup = await NewBackup.in(folder);
  const copies = new FileCopies(openImageStorage(config), backup);
  await copies.update();
  const madeAt = new Date().toISOString();
  const database = await dumpTables(databaseUrl, async (table, rows) => {
    const packed = rows.pipe(createGzip());
    rows.on('error', (error) => packed.destroy(error));
    await backup.write(`${tablesFolder}/${table}.gz`, packed);
  });
  await copies.update();
  const key = join(config.dataDir, keyFile);
  if (existsSync(key)) await backup.write(keyFile, createReadStream(key));
  const models = await modelsOf(config);
  await backup.finish({ made_at: madeAt, database, models });
  return {
    folder,
    made_at: madeAt,
    rows: rowCount(database),
    files: copies.count,
    bytes: copies.bytes,
    models: models.length,
  };
}

export const rowCount = ({ tables }: DumpContents): number => tables.reduce((sum, { rows }) => sum + rows, 0);

class FileCopies {
  private readonly copied = new Map<string, { bytes: number; modifiedMs: number }>();

  constructor(
    private readonly storage: ImageStorage,
    private readonly backup: NewBackup,
  ) {}

  get count(): number {
    return this.copied.size;
  }

  get bytes(): number {
    return [...this.copied.values()].reduce((sum, { bytes }) => sum + bytes, 0);
  }

  async update(): Promise<void> {
    await Readable.from(this.storage.list()).forEach(async ({ key, bytes, modifiedAt }: StoredObject) => {
      const before = this.copied.get(key);
      const modifiedMs = modifiedAt.getTime();
      if (!isKept(key) || (before?.bytes === bytes && before.modifiedMs === modifiedMs)) return;
      // It may have been deleted since it was listed.
      const found = await this.storage.read(key);
      if (!found) return;
      const written = await this.backup.write(`${filesFolder}/${key}`, Readable.from(found.stream));
      this.copied.set(key, { bytes: written, modifiedMs });
    }, atATime);
  }
}

/** Files that are still being written have no row, and the probe of a store has no content. */
export const isKept = (key: string): boolean => !key.endsWith('.part') && !key.startsWith('health/');

async function modelsOf({ modelsDir }: Config): Promise<BackedUpModel[]> {
  const models = await new ModelStore(modelsDir).list();
  return models.flatMap(({ name, hash, source }) => (hash ? [{ name, hash, ...(source && { source }) }] : []));
}
