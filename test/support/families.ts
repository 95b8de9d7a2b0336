import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { gunzipSync } from 'node:zlib';

const FAMILIES = join(__dirname, '..', 'golden', 'families');

/** Writes the files of a family of test/golden/families to a folder, uncompressed. */
export async function unpackFamily(name: string, folder: string): Promise<void> {
  for (const entry of await readdir(join(FAMILIES, name), { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const file = join(entry.parentPath, entry.name);
    const target = join(folder, file.slice(join(FAMILIES, name).length)).replace(/\.gz$/, '');
    await mkdir(dirname(target), { recursive: true });
    const data = await readFile(file);
    await writeFile(target, file.endsWith('.gz') ? gunzipSync(data) : data);
  }
}
