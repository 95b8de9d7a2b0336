import { type ModelProgress, ProgressMeter } from './model-progress';
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { checkDiskSpace, explainDiskErrors } from './model-store-error';
import { selectModelFiles } from './model-files';
import { listFolder } from './model-layout';

/**
 * Copies the files of a model from a folder into `target` and hashes them meanwhile. Links are followed, so the source
 * may be a folder of the hub's own cache.
 * @returns the sha256 of each file by its path in the model
 */
export async function copyModel(
  source: string,
  target: string,
  onProgress: ((progress: ModelProgress) => void) | undefined,
  signal: AbortSignal,
): Promise<Map<string, string>> {
  const chosen = await Promise.all(
    selectModelFiles(await listFolder(source)).map(async (file) => ({
      ...file,
      size: (await stat(join(source, file.from))).size,
    })),
  );
  const totalBytes = chosen.reduce((sum, { size }) => sum + size, 0);
  await checkDiskSpace(target, totalBytes);
  const meter = new ProgressMeter('copy', totalBytes, chosen.length, onProgress);
  const files = new Map<string, string>();
  for (const { from, to } of chosen) {
    await explainDiskErrors(mkdir(dirname(join(target, to)), { recursive: true }));
    files.set(to, await copyFile(join(source, from), join(target, to), (bytes) => meter.set(to, bytes), signal));
    meter.finish(to);
  }
  return files;
}

async function copyFile(
  from: string,
  to: string,
  onBytes: (bytes: number) => void,
  signal: AbortSignal,
): Promise<string> {
  const hash = createHash('sha256');
  const handle = await explainDiskErrors(open(to, 'w'));
  let bytes = 0;
  try {
    for await (const chunk of createReadStream(from, { highWaterMark: 1 << 20, signal })) {
      await explainDiskErrors(handle.writeFile(chunk as Buffer));
      hash.update(chunk as Buffer);
      onBytes((bytes += (chunk as Buffer).length));
    }
    await explainDiskErrors(handle.sync());
  } finally {
    await handle.close();
  }
  return hash.digest('hex');
}
