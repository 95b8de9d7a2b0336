import type { Stats } from 'node:fs';
import { opendir, realpath, stat } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { cures } from './cures';
import { ModelFolderError } from './errors';

/** A file or folder below a model's folder. */
interface FolderEntry {
  /** Relative, with forward slashes. */
  path: string;
  /** What it is, links followed; undefined for a link that leads nowhere. */
  found: Stats | undefined;
}

/** Far more than any model has. */
const mostEntries = 10_000;

/**
 * Everything below a folder, also behind links, level by level. Of a link to a folder that it lies in, only the link is
 * told: two of them would double what is found at each level.
 * @throws ModelFolderError if there is more than a model can have, which links side by side bring about too
 */
export async function entriesBelow(folder: string, most = mostEntries): Promise<FolderEntry[]> {
  const entries: FolderEntry[] = [];
  const waiting: { below: string; above: string[] }[] = [{ below: '', above: [] }];
  for (const { below, above } of waiting) {
    const real = await realpath(join(folder, below));
    if (above.some((other) => isWithin(other, real))) continue;
    const names: string[] = [];
    for await (const { name } of await opendir(join(folder, below))) {
      names.push(name);
      if (entries.length + names.length > most)
        throw new ModelFolderError(folder, `holds more than ${most} files and folders`, cures.removeOthers);
    }
    const found = await Promise.all(names.sort().map((name) => entryAt(folder, below ? `${below}/${name}` : name)));
    for (const entry of found) {
      entries.push(entry);
      if (entry.found?.isDirectory()) waiting.push({ below: entry.path, above: [...above, real] });
    }
  }
  return entries;
}

async function entryAt(folder: string, path: string): Promise<FolderEntry> {
  return { path, found: await stat(join(folder, path)).catch(() => undefined) };
}

const isWithin = (path: string, folder: string): boolean =>
  path === folder || path.startsWith(folder.endsWith(sep) ? folder : `${folder}${sep}`);
