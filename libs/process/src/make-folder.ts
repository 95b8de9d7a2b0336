import { lstatSync, mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Makes a folder and those it is in, where they are missing. It does what mkdirSync with `recursive` does and always
 * ends: Node's goes on for ever where a file system answers "no such file" for a folder whose parent exists, as /proc
 * does.
 * @throws the error of the file system, such as EACCES, ENOENT, ENOTDIR or EEXIST (a file has that name).
 */
export function makeFolder(path: string, mode?: number): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return;
  const parent = dirname(path);
  if (parent !== path && !lstatSync(parent, { throwIfNoEntry: false })) makeFolder(parent, mode);
  try {
    mkdirSync(path, mode);
  } catch (error) {
    // Another process made it meanwhile.
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return;
    throw error;
  }
}
