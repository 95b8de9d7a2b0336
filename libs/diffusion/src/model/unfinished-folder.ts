import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** How the name of a folder begins from which a mended graph is opened. */
export const mendedPrefix = 'darkroom-graph-';
/** What follows the name of an entry of the cache while it is written. */
export const partMark = '.part-';
/** An unfinished folder of this age was left by a process that died. */
const abandonedMs = 60 * 60 * 1000;

/** Whether a folder of the cache is no entry but one that an engine, of this process or another, is working in. */
export function isUnfinished(name: string): boolean {
  return name.startsWith(mendedPrefix) || name.includes(partMark);
}

/** Deletes the unfinished folders of processes that died. */
export async function removeUnfinished(cacheDir: string): Promise<void> {
  for (const name of (await readdir(cacheDir)).filter(isUnfinished)) {
    const folder = join(cacheDir, name);
    // One that is gone already was finished meanwhile.
    const { mtimeMs } = (await stat(folder).catch(() => undefined)) ?? { mtimeMs: Infinity };
    if (Date.now() - mtimeMs > abandonedMs) await rm(folder, { recursive: true, force: true });
  }
}
