import { createHash, randomUUID } from 'node:crypto';
import { constants, createReadStream } from 'node:fs';
import {
  copyFile,
  link,
  mkdir,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  stat,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** What identifies a merged model on disk. Hashes may have any form; `variant` is the scale or the token. */
export interface MergeKey {
  kind: 'lora' | 'embedding';
  baseHash: string;
  weightsHash: string;
  variant: string;
}

/** How many weights a merge changed; kept with its files. */
export interface MergeRecord {
  merged: number;
}

/** The file of a merged folder that says it is complete; never shared with the next merge. */
export const MERGE_RECORD = 'merge.json';
/** Where files of a base on another device are copied to, once for all merges. */
const SPARE = 'bases';
/** A temporary folder this old was left by a process that died. */
const ABANDONED_MS = 60 * 60 * 1000;
/** How long after its last use a merge is not pruned. */
const IN_USE_MS = 10 * 60 * 1000;

const running = new Map<string, Promise<MergeRecord>>();

/**
 * The folder of a merge, built if it is not in the cache. It is built under another name and renamed when it is complete, so
 * that a process that dies leaves no half of one; two that build the same at once keep the first.
 */
export async function cachedMerge(
  cacheDir: string,
  key: MergeKey,
  build: (folder: string) => Promise<MergeRecord>,
): Promise<MergeRecord & { folder: string }> {
  const folder = join(cacheDir, `${prefix(key.kind, key.weightsHash)}${short(`${key.baseHash}\n${key.variant}`)}`);
  const merge = running.get(folder) ?? readOrBuild(cacheDir, folder, build).finally(() => running.delete(folder));
  running.set(folder, merge);
  return { folder, ...(await merge) };
}

/** Removes every merge of these weights, whatever the base and scale. Sessions that have them open go on working. */
export async function removeMerged(cacheDir: string, weightsHash: string): Promise<void> {
  const prefixes = [prefix('lora', weightsHash), prefix('embedding', weightsHash)];
  for (const name of await list(cacheDir)) {
    if (prefixes.some((start) => name.startsWith(start))) await discard(cacheDir, join(cacheDir, name));
  }
}

/**
 * Removes the merges that were not used for longest, until the rest has at most `maxBytes` of its own; what is linked from the
 * base does not count. One that was used within the last minutes stays, as it may be about to be loaded.
 */
export async function pruneMerged(cacheDir: string, maxBytes: number): Promise<void> {
  const merges: { folder: string; usedMs: number; bytes: number }[] = [];
  for (const name of await list(cacheDir)) {
    const folder = join(cacheDir, name);
    const record = await stat(join(folder, MERGE_RECORD)).catch(() => undefined);
    if (record) merges.push({ folder, usedMs: record.mtimeMs, bytes: await ownBytes(folder) });
  }
  merges.sort((a, b) => b.usedMs - a.usedMs);
  let total = 0;
  for (const { folder, usedMs, bytes } of merges) {
    total += bytes;
    if (total > maxBytes && Date.now() - usedMs > IN_USE_MS) await discard(cacheDir, folder);
  }
}

/** Removes a merge all at once: a process that dies meanwhile leaves a temporary folder and no half of a merge. */
async function discard(cacheDir: string, folder: string): Promise<void> {
  const temporary = join(cacheDir, `.tmp-${randomUUID()}`);
  await rename(folder, temporary).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
  });
  await rm(temporary, { recursive: true, force: true });
}

async function ownBytes(folder: string): Promise<number> {
  let bytes = 0;
  for (const name of await list(folder)) {
    const found = await stat(join(folder, name)).catch(() => undefined);
    if (found?.isDirectory()) bytes += await ownBytes(join(folder, name));
    else if (found?.nlink === 1) bytes += found.size;
  }
  return bytes;
}

async function readOrBuild(
  cacheDir: string,
  folder: string,
  build: (folder: string) => Promise<MergeRecord>,
): Promise<MergeRecord> {
  const stored = await readRecord(folder);
  if (stored) return stored;
  await removeAbandoned(cacheDir);
  const temporary = join(cacheDir, `.tmp-${randomUUID()}`);
  await mkdir(temporary, { recursive: true });
  try {
    const record = await build(temporary);
    await writeFile(join(temporary, MERGE_RECORD), JSON.stringify(record), { flag: 'wx', flush: true });
    await rename(temporary, folder);
    return record;
  } catch (error) {
    await rm(temporary, { recursive: true, force: true });
    const other = await readRecord(folder);
    if (other) return other;
    throw error;
  }
}

/** The record of a complete merge, whose time is that of its last use. */
async function readRecord(folder: string): Promise<MergeRecord | undefined> {
  const path = join(folder, MERGE_RECORD);
  const text = await readFile(path, 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  await utimes(path, new Date(), new Date()).catch(() => undefined);
  return JSON.parse(text) as MergeRecord;
}

async function removeAbandoned(cacheDir: string): Promise<void> {
  for (const name of await list(cacheDir)) {
    if (!name.startsWith('.tmp-')) continue;
    const path = join(cacheDir, name);
    const age = Date.now() - ((await stat(path).catch(() => undefined))?.mtimeMs ?? Date.now());
    if (age > ABANDONED_MS) await rm(path, { recursive: true, force: true });
  }
}

/**
 * Places a model's files under `to` as hard links. ONNX Runtime refuses external data behind a symbolic link or outside the
 * model's folder, but takes a hard link. Across devices, and where links are not permitted, a file is copied once into the
 * cache and linked from there.
 */
export class FileSharer {
  constructor(
    private readonly cacheDir: string,
    private readonly baseHash: string,
  ) {}

  /** Shares every file below `from` whose path, relative to it, is `wanted`. */
  async shareTree(from: string, to: string, wanted: (path: string) => boolean, below = ''): Promise<void> {
    for (const entry of await list(join(from, below))) {
      const path = below ? `${below}/${entry}` : entry;
      if ((await stat(join(from, path))).isDirectory()) await this.shareTree(from, to, wanted, path);
      else if (wanted(path)) await this.share(join(from, path), join(to, path));
    }
  }

  async share(from: string, to: string): Promise<void> {
    const source = await realpath(from);
    await mkdir(dirname(to), { recursive: true });
    try {
      await link(source, to);
    } catch (error) {
      if (!['EXDEV', 'EPERM', 'EACCES', 'EMLINK', 'ENOTSUP'].includes((error as NodeJS.ErrnoException).code ?? ''))
        throw error;
      await link(await this.spare(source), to);
    }
  }

  private async spare(source: string): Promise<string> {
    const spare = join(this.cacheDir, SPARE, short(`${this.baseHash}\n${source}`));
    if (await stat(spare).catch(() => undefined)) return spare;
    const temporary = join(this.cacheDir, `.tmp-${randomUUID()}`);
    await mkdir(dirname(spare), { recursive: true });
    await copyFile(source, temporary, constants.COPYFILE_FICLONE);
    await rename(temporary, spare);
    return spare;
  }
}

/** SHA-256 of a file, in hexadecimal. */
export async function hashFile(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  return hash.digest('hex');
}

/** SHA-256 over the names and contents of all files in a folder, in hexadecimal. */
export async function hashFolder(folder: string): Promise<string> {
  const hash = createHash('sha256');
  for (const name of (await list(folder)).sort()) {
    const path = join(folder, name);
    const content = (await stat(path)).isDirectory() ? await hashFolder(path) : await hashFile(path);
    hash.update(`${JSON.stringify(name)} ${content}\n`);
  }
  return hash.digest('hex');
}

function prefix(kind: MergeKey['kind'], weightsHash: string): string {
  return `${kind}-${short(weightsHash)}-`;
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
