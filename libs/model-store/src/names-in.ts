import { readdir } from 'node:fs/promises';
import { systemCode } from './model-store-error';

/** What a folder has, sorted; nothing if there is no folder. */
export async function namesIn(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT') return [];
    throw error;
  });
  return names.sort();
}
