import { execFile } from 'node:child_process';
import { mkdir, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Site } from './site';

const run = promisify(execFile);
/** Space for a few pictures of some hundred kB. */
const diskMb = 4;

/** The file system of a site's pictures, so small that it can be filled. */
export interface SmallDisk {
  /** The file that fills it. */
  ballast: string;
  /** @param leftBytes that stay free */
  fill: (leftBytes?: number) => Promise<void>;
}

/** Mounts it, until the end of the site. @returns else why this process may not */
export async function mountSmallDisk(site: Site): Promise<SmallDisk | { skipped: string }> {
  const images = join(site.dataDir, 'images');
  await mkdir(images, { recursive: true });
  try {
    await run('mount', ['-t', 'tmpfs', '-o', `size=${diskMb}m`, 'tmpfs', images]);
  } catch (error) {
    const reason = (error as Error).message.trim().split('\n').at(-1);
    return { skipped: `this process may not mount a small file system (${reason})` };
  }
  site.finally(() => run('umount', ['-l', images]));
  const ballast = join(images, 'ballast');
  const fill = async (leftBytes = 0): Promise<void> => {
    await writeFile(ballast, Buffer.alloc(diskMb * 2 ** 20)).catch(() => undefined);
    if (leftBytes > 0) await truncate(ballast, (await stat(ballast)).size - leftBytes);
  };
  return { ballast, fill };
}
