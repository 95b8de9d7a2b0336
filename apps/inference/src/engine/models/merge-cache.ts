import { createHash, randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { copyFile, link, mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** The identity of a merged model on disk. Hashes may have any form; `variant` is the scale or the token. */
export interface MergeKey {
  kind: 'lora' | 'embedding';
  baseHash: string;
  weightsHash: string;
  variant: string;
}

/** Fills an empty folder with a merged model. @returns how many weights it changed */
type Build = (folder: string) => Promise<number>;

/**
 * The file that marks a merged folder as complete, and names its origin. Its modification time is the folder's last
 * use.
 */
const MERGE_RECORD = 'merge.json';
/** Folder for copies of base files on another device, shared by all merges. */
const COPIES = 'bases';
/** How often a merge that goes on touches its temporary folder. */
const TOUCH_MS = 30 * 1000;
/**
 * A temporary folder that was not touched for this long was left by a process that died. By default an engine that is
 * inside one call is ended sooner (`ENGINE_STALL_SECONDS`).
 */
const ABANDONED_MS = 20 * 60 * 1000;

/**
 * The folder of a merge, built if it is not in the cache. It is built under another name and renamed when complete, so
 * that a process that dies leaves no half of it. An engine builds one at a time; where two engines or workers build the
 * same one, the first that is complete is kept. To wait for the other would not be sooner, and it may be given up.
 * @param owner for whom it is built; it counts as theirs, whoever uses it
 */
export async function cachedMerge(cacheDir: string, key: MergeKey, build: Build, owner = ''): Promise<string> {
  const name = `${key.kind}-${short(key.weightsHash)}-${short(`${key.baseHash}\n${key.variant}`)}`;
  const folder = join(cacheDir, name);
  if (!(await markUsed(folder))) await buildMerge(cacheDir, folder, build, { owner, weightsHash: key.weightsHash });
  return folder;
}

/** Where the merges are in a worker's cache. */
export const mergesIn = (cacheDir: string): string => join(cacheDir, 'finetunes');

/** For whom a merge was built, and with which weights; '' for one of an earlier version. */
interface Origin {
  owner: string;
  weightsHash: string;
}

/** A merge in the cache. */
export interface Merge extends Origin {
  folder: string;
  usedMs: number;
}

/** All merges that are complete. */
export async function allMerges(cacheDir: string): Promise<Merge[]> {
  const found: Merge[] = [];
  for (const name of await namesIn(cacheDir)) {
    const folder = join(cacheDir, name);
    const usedMs = await lastUseOf(folder);
    if (usedMs !== undefined) found.push({ folder, usedMs, ...(await originOf(folder)) });
  }
  return found;
}

/** A merge was deleted before it was loaded: it has to be made anew. */
export class MergeGoneError extends Error {
  override readonly name = 'MergeGoneError';
}

/**
 * Does something with a complete merge.
 * @throws MergeGoneError in place of any other error if the merge is gone by then: its weights are not at fault
 */
export async function withMerge<T>(folder: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if ((await lastUseOf(folder)) !== undefined) throw error;
    throw new MergeGoneError('The merged model is gone.', { cause: error });
  }
}

/** When a merge was last used, in milliseconds since the epoch; undefined if there is none that is complete. */
export async function lastUseOf(folder: string): Promise<number | undefined> {
  return (await stat(join(folder, MERGE_RECORD)).catch(() => undefined))?.mtimeMs;
}

async function originOf(folder: string): Promise<Origin> {
  const unknown = { owner: '', weightsHash: '' };
  try {
    return { ...unknown, ...(JSON.parse(await readFile(join(folder, MERGE_RECORD), 'utf8')) as Partial<Origin>) };
  } catch {
    return unknown;
  }
}

/** Places a base file that cannot be linked: it is copied into the cache once, and linked from there. */
export async function placeCachedCopy(cacheDir: string, baseHash: string, from: string, to: string): Promise<void> {
  const copy = join(cacheDir, COPIES, short(`${baseHash}\n${from}`));
  try {
    return await link(copy, to);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  const temporary = temporaryIn(cacheDir);
  await mkdir(dirname(copy), { recursive: true });
  try {
    await copyFile(from, temporary, constants.COPYFILE_FICLONE);
    // The merge's link is first, because another process may delete a copy without one.
    await link(temporary, to);
    await rename(temporary, copy);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

/** The copies of bases; each has one link more than there are merges that use it. */
export async function copiesIn(cacheDir: string): Promise<{ path: string; ino: number; nlink: number }[]> {
  const copies: { path: string; ino: number; nlink: number }[] = [];
  for (const name of await namesIn(join(cacheDir, COPIES))) {
    const path = join(cacheDir, COPIES, name);
    const found = await stat(path).catch(() => undefined);
    if (found) copies.push({ path, ino: found.ino, nlink: found.nlink });
  }
  return copies;
}

async function buildMerge(cacheDir: string, folder: string, build: Build, origin: Origin): Promise<void> {
  await removeAbandoned(cacheDir);
  const temporary = temporaryIn(cacheDir);
  await mkdir(temporary, { recursive: true });
  const touching = setInterval(() => void touch(temporary).catch(() => undefined), TOUCH_MS).unref();
  try {
    const merged = await build(temporary);
    const record = join(temporary, MERGE_RECORD);
    // A base may have a file with this name, which would be overwritten through its link.
    await rm(record, { force: true });
    await writeFile(record, JSON.stringify({ merged, ...origin }), { flag: 'wx', flush: true });
    await rename(temporary, folder);
  } catch (error) {
    await rm(temporary, { recursive: true, force: true });
    // Another may have built it meanwhile.
    if (!(await markUsed(folder))) throw error;
  } finally {
    clearInterval(touching);
  }
}

/** Marks a merge as used now. @returns whether it exists and is complete */
export async function markUsed(folder: string): Promise<boolean> {
  try {
    // In one step: whoever deletes it looks at this time once nobody can set it any more.
    await touch(join(folder, MERGE_RECORD));
    return true;
  } catch {
    return (await lastUseOf(folder)) !== undefined;
  }
}

/** Makes now the time of a file's or a folder's last change. */
export const touch = (path: string): Promise<void> => utimes(path, new Date(), new Date());

/** Removes what processes that died have left. */
export async function removeAbandoned(cacheDir: string): Promise<void> {
  for (const name of await namesIn(cacheDir)) {
    if (!name.startsWith('.tmp-')) continue;
    const path = join(cacheDir, name);
    const age = Date.now() - ((await stat(path).catch(() => undefined))?.mtimeMs ?? Date.now());
    if (age > ABANDONED_MS) await rm(path, { recursive: true, force: true });
  }
}

/** A new path, which counts as abandoned when it was not touched for long. */
export function temporaryIn(cacheDir: string): string {
  return join(cacheDir, `.tmp-${randomUUID()}`);
}

function short(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 24);
}

/** Names in a folder; none if it does not exist. */
export async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
}
