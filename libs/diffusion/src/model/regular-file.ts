import type { Stats } from 'node:fs';
import { stat } from 'node:fs/promises';
import { cures } from './cures';
import { ModelFolderError } from './errors';
import { rethrowPassing } from './graph-fault';

/** Whether something is a pipe, a socket or a device. */
export const isSpecial = (found: Stats): boolean => !found.isFile() && !found.isDirectory();

/** The end of a sentence about such a thing in place of a file. */
export const isNoFile = 'is a pipe, a socket or a device, and no file';

/**
 * What a path of a model leads to, links followed; undefined if nothing can be found there. To be called before the
 * path is opened: opening a pipe waits for a writer that may never come.
 * @throws ModelFolderError if it is a pipe, a socket or a device
 */
export async function statFile(path: string): Promise<Stats | undefined> {
  const found = (await stat(path).catch(rethrowPassing)) ?? undefined;
  if (found && isSpecial(found)) throw new ModelFolderError(path, isNoFile, cures.installAgain);
  return found;
}
