import { chmodSync, lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder } from './make-folder';
import { DataFolderError } from './start-error';

const othersMask = 0o077;
/** The group may pass through a folder but not list it. */
const groupMayPass = 0o010;
/** Errors of a folder that belongs to somebody else, or that nobody may write to. */
const forbidden = ['EACCES', 'EPERM', 'EROFS'];

/**
 * Makes the data folder, with its prompts, pictures and keys, and everything this process creates from now on private
 * to its user. Permissions that an earlier version left open are removed on the first level, which makes deeper ones
 * unreachable. A folder of another user is left as it is.
 * @throws DataFolderError
 */
export function keepDataPrivate(dataDir: string): void {
  process.umask(othersMask);
  // If a folder may not be made or listed, the code that needs it reports that; with pictures in S3 nothing may need
  // it.
  try {
    ignoring(forbidden, () => makeFolder(dataDir));
  } catch (error) {
    throw new DataFolderError(dataDir, error);
  }
  ignoringMissing(() => restrict(dataDir, isPassedByPostgres(dataDir) ? groupMayPass : 0));
  for (const name of ignoringMissing(() => readdirSync(dataDir)) ?? [])
    ignoringMissing(() => restrict(join(dataDir, name), 0));
}

/**
 * PostgreSQL does not run as root, so root's data folder lets the group of PostgreSQL's user pass
 * through to the database.
 */
function isPassedByPostgres(dataDir: string): boolean {
  const cluster = lstatSync(join(dataDir, 'postgres'), { throwIfNoEntry: false });
  return process.getuid?.() === 0 && cluster !== undefined && cluster.uid !== 0;
}

function restrict(path: string, kept: number): void {
  const status = lstatSync(path);
  if (status.isSymbolicLink() || (status.mode & othersMask & ~kept) === 0) return;
  chmodSync(path, status.mode & 0o777 & ~(othersMask & ~kept));
}

/** Ignores files of another user, who has to close them, and files that are gone by now. */
const ignoringMissing = <T>(act: () => T): T | undefined => ignoring([...forbidden, 'ENOENT'], act);

function ignoring<T>(codes: readonly string[], act: () => T): T | undefined {
  try {
    return act();
  } catch (error) {
    if (codes.includes((error as NodeJS.ErrnoException).code ?? '')) return undefined;
    throw error;
  }
}
