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
 * The file that marks a merged folder as complete, and names its owner. Its modification time is the folder's last use.
 */
const MERGE_RECORD = 'merge.json';
/** Folder for copies of base files on another device, shared by all merges. */
const COPIES = 'bases';
/** A temporary folder of this age was left by a process that died. */
const ABANDONED_MS = 60 * 60 * 1000;
/**
 * A merge is not deleted until this long after its last use, if there is room for twice as many bytes as the others may
 * need.
 */
const IN_USE_MS = 10 * 60 * 1000;
/** Where there is not, it is not deleted until this long after: until it is loaded, if that is about to happen. */
const LOADING_MS = 60 * 1000;
/**
 * A merge that was not loaded for this long is deleted, so that no copy stays of the weights of a
 * Fine-Tune that is deleted.
 */
const UNUSED_MS = 24 * 60 * 60 * 1000;

/**
 * The folder of a merge, built if it is not in the cache. It is built under another name and renamed when complete, so
 * that a process that dies leaves no half of it. An engine builds one at a time; where two engines or workers build the
 * same one, the first that is complete is kept. To wait for the other would not be sooner, and it may be given up.
 * @param owner for whom it is built; it counts as theirs, whoever uses it
 */
export async function cachedMerge(cacheDir: string, key: MergeKey, build: Build, owner = ''): Promise<string> {
  const name = `${key.kind}-${short(key.weightsHash)}-${short(`${key.baseHash}\n${key.variant}`)}`;
  const folder = join(cacheDir, name);
  if (!(await markUsed(folder))) await buildMerge(cacheDir, folder, build, owner);
  return folder;
}

/** Where the merges are in a worker's cache. */
export const mergesIn = (cacheDir: string): string => join(cacheDir, 'finetunes');

/**
 * Deletes the merges that were not used for a day, and the least recently used ones until the others need at most
 * `maxBytes`: themselves and the copies of their bases, without files linked from a base; then the copies that no merge
 * links to any more. A merge that was used within the last minutes is kept, because it may be about to be loaded; one
 * that is loaded needs its files no longer. Beyond twice `maxBytes` only those of the last minute are, so that nobody
 * fills the disk by having many made: an engine merges one at a time, so these are as many as it makes in a minute.
 *
 * What an owner has beyond half of `maxBytes`, without copies of bases, goes before anything of another's, the least
 * recently used first. So an owner who has merges made without end, each with another scale, takes no more than the
 * room that the others leave, and evicts nothing of those who together need less than half.
 */
export async function pruneMerged(cacheDir: string, maxBytes: number): Promise<void> {
  await removeAbandoned(cacheDir);
  let keptBytes = 0;
  const keptCopies = new Set<number>();
  for (const { folder, usedMs, ownBytes, copies } of await byWorth(cacheDir, maxBytes / 2)) {
    const unusedMs = Date.now() - usedMs;
    const added = [...copies].filter(([ino]) => !keptCopies.has(ino));
    const total = added.reduce((sum, [, size]) => sum + size, keptBytes + ownBytes);
    const keptMs = total > 2 * maxBytes ? LOADING_MS : IN_USE_MS;
    if (unusedMs > UNUSED_MS || (total > maxBytes && unusedMs > keptMs)) await discard(cacheDir, folder);
    else {
      keptBytes = total;
      for (const [ino] of added) keptCopies.add(ino);
    }
  }
  for (const { path, nlink } of await copiesIn(cacheDir)) if (nlink === 1) await rm(path, { force: true });
}

/** What a merge has on the disk. */
interface Contents {
  /** Without what is linked from a base, or from the copy of one. */
  ownBytes: number;
  /** The copies of bases that it links to: bytes by inode number. */
  copies: Map<number, number>;
}

interface Merge extends Contents {
  folder: string;
  owner: string;
  usedMs: number;
}

/**
 * All merges, the last used first; those with which an owner has more than so many bytes of its own are behind the
 * others.
 */
async function byWorth(cacheDir: string, bytesOfOwner: number): Promise<Merge[]> {
  const copies = new Set((await copiesIn(cacheDir)).map(({ ino }) => ino));
  const found: Omit<Merge, keyof Contents>[] = [];
  for (const name of await list(cacheDir)) {
    const folder = join(cacheDir, name);
    const record = await stat(join(folder, MERGE_RECORD)).catch(() => undefined);
    if (record) found.push({ folder, owner: await ownerOf(folder), usedMs: record.mtimeMs });
  }
  found.sort((a, b) => b.usedMs - a.usedMs);
  const bytesOf = new Map<string, number>();
  const [within, beyond]: [Merge[], Merge[]] = [[], []];
  for (const merge of found) {
    const contents = await contentsOf(merge.folder, copies);
    const all = (bytesOf.get(merge.owner) ?? 0) + contents.ownBytes;
    bytesOf.set(merge.owner, all);
    (all <= bytesOfOwner ? within : beyond).push({ ...merge, ...contents });
  }
  return [...within, ...beyond];
}

/** The owner that a merge counts for; '' for one of an earlier version. */
async function ownerOf(folder: string): Promise<string> {
  try {
    return (JSON.parse(await readFile(join(folder, MERGE_RECORD), 'utf8')) as { owner?: string }).owner ?? '';
  } catch {
    return '';
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

async function copiesIn(cacheDir: string): Promise<{ path: string; ino: number; nlink: number }[]> {
  const copies: { path: string; ino: number; nlink: number }[] = [];
  for (const name of await list(join(cacheDir, COPIES))) {
    const path = join(cacheDir, COPIES, name);
    const found = await stat(path).catch(() => undefined);
    if (found) copies.push({ path, ino: found.ino, nlink: found.nlink });
  }
  return copies;
}

/** Removes a merge atomically: a process that dies meanwhile leaves a temporary folder but no half of a merge. */
async function discard(cacheDir: string, folder: string): Promise<void> {
  const temporary = temporaryIn(cacheDir);
  await rename(folder, temporary).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
  });
  await rm(temporary, { recursive: true, force: true });
}

/** @param copies inode numbers of all copies of bases @param found what was found before, to which this is added */
async function contentsOf(
  folder: string,
  copies: ReadonlySet<number>,
  found: Contents = { ownBytes: 0, copies: new Map() },
): Promise<Contents> {
  for (const name of await list(folder)) {
    const file = await stat(join(folder, name)).catch(() => undefined);
    if (file?.isDirectory()) await contentsOf(join(folder, name), copies, found);
    else if (file && copies.has(file.ino)) found.copies.set(file.ino, file.size);
    else if (file?.nlink === 1) found.ownBytes += file.size;
  }
  return found;
}

async function buildMerge(cacheDir: string, folder: string, build: Build, owner: string): Promise<void> {
  await removeAbandoned(cacheDir);
  const temporary = temporaryIn(cacheDir);
  await mkdir(temporary, { recursive: true });
  try {
    const merged = await build(temporary);
    const record = join(temporary, MERGE_RECORD);
    // A base may have a file with this name, which would be overwritten through its link.
    await rm(record, { force: true });
    await writeFile(record, JSON.stringify({ merged, owner }), { flag: 'wx', flush: true });
    await rename(temporary, folder);
  } catch (error) {
    await rm(temporary, { recursive: true, force: true });
    // Another may have built it meanwhile.
    if (!(await markUsed(folder))) throw error;
  }
}

/** Marks a merge as used now. @returns whether it exists and is complete */
export async function markUsed(folder: string): Promise<boolean> {
  const record = join(folder, MERGE_RECORD);
  if (!(await stat(record).catch(() => undefined))) return false;
  await utimes(record, new Date(), new Date()).catch(() => undefined);
  return true;
}

async function removeAbandoned(cacheDir: string): Promise<void> {
  for (const name of await list(cacheDir)) {
    if (!name.startsWith('.tmp-')) continue;
    const path = join(cacheDir, name);
    const age = Date.now() - ((await stat(path).catch(() => undefined))?.mtimeMs ?? Date.now());
    if (age > ABANDONED_MS) await rm(path, { recursive: true, force: true });
  }
}

function temporaryIn(cacheDir: string): string {
  return join(cacheDir, `.tmp-${randomUUID()}`);
}

function short(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 24);
}

async function list(folder: string): Promise<string[]> {
  return readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
}
