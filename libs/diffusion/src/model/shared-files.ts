import { constants, copyFile, link, mkdir, realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { entriesBelow } from './model-files';

/** Places a file where a hard link is impossible, as on another device. */
export type PlaceCopy = (from: string, to: string) => Promise<void>;

/** Error codes of a link across devices, and where links are not permitted or too many. */
const unlinkable = ['EXDEV', 'EPERM', 'EACCES', 'EMLINK', 'ENOTSUP'];

/** Copies a file; a file system with copy-on-write shares its blocks. */
export const placeCopy: PlaceCopy = (from, to) => copyFile(from, to, constants.COPYFILE_FICLONE);

/**
 * Places a model's file under another name as a hard link: ONNX Runtime rejects external data behind a symbolic link or
 * outside the model's folder, but accepts a hard link. If linking fails, `copy` places the file.
 */
export async function shareFile(from: string, to: string, copy: PlaceCopy): Promise<void> {
  const source = await realpath(from);
  await mkdir(dirname(to), { recursive: true });
  try {
    await link(source, to);
  } catch (error) {
    if (!unlinkable.includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
    await copy(source, to);
  }
}

/** Links every file below `from` whose relative path is `wanted`. */
export async function shareFolder(
  from: string,
  to: string,
  copy: PlaceCopy,
  wanted: (path: string) => boolean,
): Promise<void> {
  for (const { path, found } of await entriesBelow(from))
    if (found?.isFile() && wanted(path)) await shareFile(join(from, path), join(to, path), copy);
}
