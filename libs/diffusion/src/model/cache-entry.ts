import { randomUUID } from 'node:crypto';
import { open, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type GraphOrigin, sampleOf, stateOf } from './graph-identity';

/** What an entry of the cache was made from, so that it can be deleted when that is gone, and what it consists of. */
interface EntryRecord {
  /** Where the files of its graph are: at more than one place if Fine-Tunes link them. */
  places: string[][];
  /** State of the files at each place. */
  state: string;
  /** Checksums of the entry's own files. */
  samples: Record<string, string>;
}

/** Holds the `EntryRecord`; its modification time is the entry's last use. */
const RECORD = 'origin.json';
/** Enough that some are left when Fine-Tunes are deleted. */
const maxPlaces = 8;

/**
 * Completes an entry: all of it is on the disk before it gets its name, so that a crash of the machine
 * leaves none with zeros.
 */
export async function sealEntry(entry: string, { files, state }: GraphOrigin): Promise<void> {
  const samples: EntryRecord['samples'] = {};
  for (const name of await readdir(entry)) {
    const file = join(entry, name);
    await sync(file, 'r+');
    samples[name] = await sampleOf(file);
  }
  await writeRecord(entry, { places: [files], state, samples });
  // Windows does not open folders.
  await sync(entry, 'r').catch(() => undefined);
}

/** Whether an entry exists and its files are those that were sealed. */
export async function isWhole(entry: string): Promise<boolean> {
  try {
    const { samples } = await readRecord(entry);
    for (const [name, sample] of Object.entries(samples))
      if ((await sampleOf(join(entry, name))) !== sample) return false;
    return true;
  } catch {
    return false;
  }
}

/** Notes that an entry was used for a graph, and where that is. */
export async function noteUse(entry: string, { files, state }: GraphOrigin): Promise<void> {
  const record = await readRecord(entry);
  const isKnown = record.places.some((place) => place.join('\n') === files.join('\n'));
  if (isKnown) return utimes(join(entry, RECORD), new Date(), new Date());
  const alive = await placesWith(state, record.places);
  await writeRecord(entry, { ...record, places: [...alive.slice(1 - maxPlaces), files] });
}

/** When an entry was used last, in milliseconds since 1970. */
export async function lastUse(entry: string): Promise<number> {
  return (await stat(join(entry, RECORD))).mtimeMs;
}

/** Whether the graph of an entry is anywhere still as it was. */
export async function hasOrigin(entry: string): Promise<boolean> {
  const { state, places } = await readRecord(entry);
  return (await placesWith(state, places)).length > 0;
}

async function placesWith(state: string, places: string[][]): Promise<string[][]> {
  const states = await Promise.all(places.map((files) => stateOf(files).catch(() => undefined)));
  return places.filter((_, index) => states[index] === state);
}

async function readRecord(entry: string): Promise<EntryRecord> {
  return JSON.parse(await readFile(join(entry, RECORD), 'utf8')) as EntryRecord;
}

/** Replaces the record at once, for another engine may be about to read it. */
async function writeRecord(entry: string, record: EntryRecord): Promise<void> {
  const temporary = join(entry, `${RECORD}.${randomUUID()}`);
  await writeFile(temporary, JSON.stringify(record), { flush: true });
  await rename(temporary, join(entry, RECORD));
}

async function sync(path: string, flags: string): Promise<void> {
  const handle = await open(path, flags);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

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
