import { mkdir, mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';

const cache = join(__dirname, '../../.cache');

/**
 * @returns a new folder on the file system of the project's models, where hard links to their files can be made;
 * temporary folders may be on another.
 */
export async function makeFolderBesideModels(name: string): Promise<string> {
  await mkdir(cache, { recursive: true });
  return mkdtemp(join(cache, `${name}-`));
}
