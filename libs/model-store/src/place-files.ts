import { createHash } from 'node:crypto';
import { constants, createReadStream } from 'node:fs';
import { copyFile, link, mkdir, open, realpath, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { hashFile } from './content-hash';
import { type ModelProgress, ProgressMeter } from './model-progress';
import { checkDiskSpace, explainDiskErrors } from './model-store-error';

/** Files that were put into a model's folder. */
export interface PlacedFiles {
  /** sha256 of each file that was read, by its path in the model; those that are linked were not. */
  files: Map<string, string>;
  /** Whether the weights take no space of their own: they are the same files as those of the source. */
  isLinked: boolean;
}

/** Progress of the work, and how it is broken off. */
export interface Watched {
  onProgress?: ((progress: ModelProgress) => void) | undefined;
  signal?: AbortSignal | undefined;
}

/**
 * Puts files into a model's folder. Weights are hard links where the file system can, so that nothing is stored twice,
 * else copies, which share their blocks where it can do that. Small files are always copied, so that whoever edits one
 * of the source's does not change the model. Links in the source are followed.
 * @param files absolute path of each, by its path in the model
 */
export async function placeFiles(
  files: ReadonlyMap<string, string>,
  target: string,
  { onProgress, signal }: Watched,
): Promise<PlacedFiles> {
  const left: { from: string; to: string; size: number }[] = [];
  for (const [to, path] of files) {
    const from = await realpath(path);
    await explainDiskErrors(mkdir(dirname(join(target, to)), { recursive: true }));
    const isPlaced = !isSmall(to) && (await withoutCopy(from, join(target, to)));
    if (!isPlaced) left.push({ from, to, size: (await stat(from)).size });
  }
  const totalBytes = left.reduce((sum, { size }) => sum + size, 0);
  await checkDiskSpace(target, totalBytes);
  const meter = new ProgressMeter('copy', totalBytes, left.length, onProgress);
  const digests = new Map<string, string>();
  for (const { from, to } of left) {
    let bytes = 0;
    const onBytes = (more: number): void => meter.set(to, (bytes += more));
    digests.set(to, await copyHashed(from, join(target, to), onBytes, signal));
    meter.finish(to);
  }
  return { files: digests, isLinked: left.every(({ to }) => isSmall(to)) };
}

/** sha256 of files of a model, by their paths. */
export async function hashFiles(
  folder: string,
  paths: readonly string[],
  { onProgress, signal }: Watched,
): Promise<Map<string, string>> {
  let totalBytes = 0;
  for (const path of paths) totalBytes += (await stat(join(folder, path))).size;
  const meter = new ProgressMeter('check', totalBytes, paths.length, onProgress);
  const digests = new Map<string, string>();
  for (const path of paths) {
    let bytes = 0;
    digests.set(path, await hashFile(join(folder, path), (more) => meter.set(path, (bytes += more)), signal));
    meter.finish(path);
  }
  return digests;
}

/**
 * sha256 of files of a model, by their paths, and what they are read beside.
 * @throws what `work` throws; then they are not read to their end
 */
export async function hashedBeside(
  folder: string,
  paths: readonly string[],
  { onProgress, signal }: Watched,
  work: () => Promise<void>,
): Promise<Map<string, string>> {
  const over = new AbortController();
  const hashing = hashFiles(folder, paths, {
    onProgress,
    signal: AbortSignal.any([over.signal, ...(signal ? [signal] : [])]),
  });
  hashing.catch(() => undefined);
  try {
    await work();
  } catch (error) {
    over.abort();
    await hashing.catch(() => undefined);
    throw error;
  }
  return hashing;
}

/** Files that are read, and may be changed, by people. */
export const isSmall = (path: string): boolean => /\.(json|txt)$/.test(path);

/**
 * Makes a file without writing its bytes again: a hard link, or a copy that shares its blocks. @returns whether it did
 */
async function withoutCopy(from: string, to: string): Promise<boolean> {
  const cloned = () => copyFile(from, to, constants.COPYFILE_FICLONE_FORCE);
  return link(from, to)
    .catch(cloned)
    .then(
      () => true,
      () => false,
    );
}

async function copyHashed(
  from: string,
  to: string,
  onBytes: (bytes: number) => void,
  signal: AbortSignal | undefined,
): Promise<string> {
  const hash = createHash('sha256');
  const handle = await explainDiskErrors(open(to, 'w'));
  try {
    for await (const chunk of createReadStream(from, { highWaterMark: 1 << 20, ...(signal && { signal }) })) {
      await explainDiskErrors(handle.writeFile(chunk as Buffer));
      hash.update(chunk as Buffer);
      onBytes((chunk as Buffer).length);
    }
    await explainDiskErrors(handle.sync());
  } finally {
    await handle.close();
  }
  return hash.digest('hex');
}
