import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';

/** The first of these programs in `PATH`; starting a process to find out would take a tenth of a second each time. */
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
