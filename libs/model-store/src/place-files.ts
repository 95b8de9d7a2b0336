import { createHash } from 'node:crypto';
import { constants, createReadStream } from 'node:fs';
import { copyFile, link, mkdir, open, realpath, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { hashFile } from './content-hash';
import { type ModelProgress, ProgressMeter } from './model-progress';
import { checkDiskSpace, explainDiskErrors } from './model-store-error';

/** What was put into a model's folder. */
export interface PlacedFiles {
  /** sha256 of each file by its path in the model. */
  files: Map<string, string>;
  /** Whether the weights take no space of their own: they are the same files as those of the source. */
  isLinked: boolean;
}

/**
 * Puts files into a model's folder and hashes them. Weights are hard links where the file system can, so that nothing is
 * stored twice, else copies, which share their blocks where it can do that. Small files are always copied, so that whoever
 * edits one of the source's does not change the model. Links in the source are followed.
 * @param files absolute path of each, by its path in the model
 */
export async function placeFiles(
  files: ReadonlyMap<string, string>,
  target: string,
  onProgress: ((progress: ModelProgress) => void) | undefined,
  signal: AbortSignal,
): Promise<PlacedFiles> {
  const sources = [];
  for (const [to, path] of files) {
    const from = await realpath(path);
    sources.push({ from, to, size: (await stat(from)).size });
  }
  const place = sources.map((file) => ({ ...file, path: join(target, file.to), isPlaced: false }));
  for (const one of place) {
    await explainDiskErrors(mkdir(dirname(one.path), { recursive: true }));
    one.isPlaced = !isSmall(one.to) && (await withoutCopy(one.from, one.path));
  }
  const left = place.filter(({ isPlaced }) => !isPlaced);
  await checkDiskSpace(
    target,
    left.reduce((sum, { size }) => sum + size, 0),
  );
  const totalBytes = sources.reduce((sum, { size }) => sum + size, 0);
  const meter = new ProgressMeter(
    left.every(({ to }) => isSmall(to)) ? 'check' : 'copy',
    totalBytes,
    files.size,
    onProgress,
  );
  const digests = new Map<string, string>();
  for (const { from, to, path, isPlaced } of place) {
    let bytes = 0;
    const onBytes = (more: number): void => meter.set(to, (bytes += more));
    digests.set(to, await (isPlaced ? hashFile(path, onBytes, signal) : copyHashed(from, path, onBytes, signal)));
    meter.finish(to);
  }
  return { files: digests, isLinked: left.every(({ to }) => isSmall(to)) };
}

const isSmall = (path: string): boolean => /\.(json|txt)$/.test(path);

/** Makes a file without writing its bytes again: a hard link, or a copy that shares its blocks. @returns whether it did */
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
  signal: AbortSignal,
): Promise<string> {
  const hash = createHash('sha256');
  const handle = await explainDiskErrors(open(to, 'w'));
  try {
    for await (const chunk of createReadStream(from, { highWaterMark: 1 << 20, signal })) {
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
