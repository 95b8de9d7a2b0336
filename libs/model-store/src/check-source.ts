import { mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { ModelFile } from './model-files';
import { findFilesIn, readLayout, refuseMissing } from './model-layout';

/**
 * Checks a folder before gigabytes of it are copied, under the names that its files will have: by way of links to them.
 * Where no links can be made it is left to the check of the copy.
 * @throws ModelStoreError `InvalidModel`
 */
export async function checkSource(source: string): Promise<void> {
  const { files, faults } = await findFilesIn(source);
  const links = await mkdtemp(join(tmpdir(), 'darkroom-model-')).catch(() => undefined);
  if (links === undefined) return;
  try {
    if (!(await areLinked(files, source, links))) return;
    await refuseMissing(links, faults);
    await readLayout(links);
  } finally {
    await rm(links, { recursive: true, force: true });
  }
}

async function areLinked(files: readonly ModelFile[], source: string, links: string): Promise<boolean> {
  try {
    for (const { from, to } of files) {
      await mkdir(dirname(join(links, to)), { recursive: true });
      await symlink(join(source, from), join(links, to));
    }
    return true;
  } catch {
    return false;
  }
}
