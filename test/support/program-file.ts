import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';

/**
 * The first program of one of these names in `PATH`. Many spec files ask, and starting a process to find out would cost
 * each of them a tenth of a second.
 */
export function programFile(...names: readonly string[]): string | undefined {
  const folders = (process.env.PATH ?? '').split(':');
  return folders.flatMap((folder) => names.map((name) => join(folder, name))).find(isExecutable);
}

/** Whether this is a file that may be run. */
export function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
