import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { gunzipSync } from 'node:zlib';

const FAMILIES = join(__dirname, '..', 'golden', 'families');

/** Writes the files of a family of test/golden/families to a folder, uncompressed. */
export function unpackFamily(name: string, folder: string): Promise<void> {
  return unpackFolder(join(FAMILIES, name), folder);
}

/** Writes the files of one folder to another, uncompressed. */
export async function unpackFolder(from: string, to: string): Promise<void> {
  for (const entry of await readdir(from, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const file = join(entry.parentPath, entry.name);
    const target = join(to, relative(from, file)).replace(/\.gz$/, '');
    await mkdir(dirname(target), { recursive: true });
    const data = await readFile(file);
    await writeFile(target, file.endsWith('.gz') ? gunzipSync(data) : data);
  }
}
