import 'reflect-metadata';
import { loadConfig } from '@app/config';
import { createDataSource } from '@app/database';
import { JsonLogger } from '@app/observability';
import { openImageStorage } from '@app/storage';
import { FileSweeper } from '../../apps/inference/src/sweeper/file-sweeper';
import type { Site } from './site';

/** Long enough for every file to be old. */
const sweepAheadMs = 3_600_000;
/** `<task id>/…`; thumbnails and weights lie beside them. */
const pictureKey = /^[\w-]{24}\//;

/** Lists the files, lets the sweeper remove what it would in time, and lists what is left. */
export async function compareFiles(site: Site): Promise<{ orphans: number; leaked: string[]; missing: string[] }> {
  const storage = openImageStorage(loadConfig({ ...site.env, DATA_DIR: site.dataDir }));
  const list = async (): Promise<Map<string, number>> => {
    const keys = new Map<string, number>();
    for await (const { key, bytes } of storage.list()) if (pictureKey.test(key)) keys.set(key, bytes);
    return keys;
  };
  const rows = await site.query<{ storage_key: string; bytes: number }>('SELECT storage_key, bytes FROM images');
  const known = new Set(rows.map(({ storage_key }) => storage_key));
  const orphans = [...(await list()).keys()].filter((key) => !known.has(key)).length;
  const dataSource = await createDataSource(site.databaseUrl, { poolSize: 1 }).initialize();
  try {
    await new FileSweeper(storage, dataSource, new JsonLogger('torture', 'silent')).sweep(Date.now() + sweepAheadMs);
  } finally {
    await dataSource.destroy();
  }
  const files = await list();
  return {
    orphans,
    leaked: [...files.keys()].filter((key) => !known.has(key)),
    missing: rows.filter(({ storage_key, bytes }) => files.get(storage_key) !== bytes).map((row) => row.storage_key),
  };
}
