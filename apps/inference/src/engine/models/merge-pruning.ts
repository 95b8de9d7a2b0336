import { rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import {
  allMerges,
  copiesIn,
  lastUseOf,
  type Merge,
  namesIn,
  removeAbandoned,
  temporaryIn,
  touch,
} from './merge-cache';

/**
 * A merge is not deleted until this long after its last use, if there is room for twice as many bytes as the others may
 * need.
 */
const IN_USE_MS = 10 * 60 * 1000;
/** Where there is not, it is not deleted until this long after: until it is loaded, if that is about to happen. */
const LOADING_MS = 60 * 1000;
/**
 * A merge that was not loaded for this long is deleted: its Fine-Tune may have another scale now, or its model other
 * files.
 */
const UNUSED_MS = 24 * 60 * 60 * 1000;

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
    if (unusedMs > UNUSED_MS || (total > maxBytes && unusedMs > keptMs)) await discard(cacheDir, { folder, usedMs });
    else {
      keptBytes = total;
      for (const [ino] of added) keptCopies.add(ino);
    }
  }
  for (const { path, nlink } of await copiesIn(cacheDir)) if (nlink === 1) await rm(path, { force: true });
}

/**
 * Deletes the merges of weights that are gone, but for those of the last minute, which may be about to be loaded.
 * @param existing tells which of these hashes are of weights that are still there
 */
export async function discardOrphans(
  cacheDir: string,
  existing: (hashes: string[]) => Promise<ReadonlySet<string>>,
): Promise<void> {
  const idle = (await allMerges(cacheDir)).filter(
    ({ weightsHash, usedMs }) => weightsHash !== '' && Date.now() - usedMs > LOADING_MS,
  );
  if (idle.length === 0) return;
  const kept = await existing(idle.map(({ weightsHash }) => weightsHash));
  for (const merge of idle) if (!kept.has(merge.weightsHash)) await discard(cacheDir, merge);
}

/** What a merge has on the disk. */
interface Contents {
  /** Without what is linked from a base, or from the copy of one. */
  ownBytes: number;
  /** The copies of bases that it links to: bytes by inode number. */
  copies: Map<number, number>;
}

type Weighed = Merge & Contents;

/**
 * All merges, the last used first; those with which an owner has more than so many bytes of its own are behind the
 * others.
 */
async function byWorth(cacheDir: string, bytesOfOwner: number): Promise<Weighed[]> {
  const copies = new Set((await copiesIn(cacheDir)).map(({ ino }) => ino));
  const bytesOf = new Map<string, number>();
  const [within, beyond]: [Weighed[], Weighed[]] = [[], []];
  for (const merge of (await allMerges(cacheDir)).sort((a, b) => b.usedMs - a.usedMs)) {
    const contents = await contentsOf(merge.folder, copies);
    const all = (bytesOf.get(merge.owner) ?? 0) + contents.ownBytes;
    bytesOf.set(merge.owner, all);
    (all <= bytesOfOwner ? within : beyond).push({ ...merge, ...contents });
  }
  return [...within, ...beyond];
}

/** @param copies inode numbers of all copies of bases @param found what was found before, to which this is added */
async function contentsOf(
  folder: string,
  copies: ReadonlySet<number>,
  found: Contents = { ownBytes: 0, copies: new Map() },
): Promise<Contents> {
  for (const name of await namesIn(folder)) {
    const file = await stat(join(folder, name)).catch(() => undefined);
    if (file?.isDirectory()) await contentsOf(join(folder, name), copies, found);
    else if (file && copies.has(file.ino)) found.copies.set(file.ino, file.size);
    else if (file?.nlink === 1) found.ownBytes += file.size;
  }
  return found;
}

/**
 * Removes a merge, unless it has been used since it was looked at. It is atomic: a process that dies meanwhile leaves a
 * temporary folder but no half of a merge.
 */
async function discard(cacheDir: string, { folder, usedMs }: Pick<Merge, 'folder' | 'usedMs'>): Promise<void> {
  const isUnused = async (place: string) => (await lastUseOf(place)) === usedMs;
  if (!(await isUnused(folder))) return;
  const temporary = temporaryIn(cacheDir);
  try {
    // A temporary folder counts as abandoned by this time, which a rename leaves as it is.
    await touch(folder);
    await rename(folder, temporary);
    // Nobody can begin to use it now, so this look is the last one needed. Whoever has built it anew keeps that one.
    if (!(await isUnused(temporary))) return await rename(temporary, folder).catch(() => removeAll(temporary));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  await removeAll(temporary);
}

const removeAll = (folder: string): Promise<void> => rm(folder, { recursive: true, force: true });
