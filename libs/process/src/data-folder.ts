import { chmodSync, lstatSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

const forOthers = 0o077;
/** With it a group may pass through a folder without seeing what lies there. */
const groupPasses = 0o010;

/**
 * From now on what this process makes is for its user alone, and so is the data folder: prompts, pictures and keys lie there. What an
 * earlier version left open is closed; below the first level nothing can be reached by then. A folder of another user stays as it is.
 */
export function keepDataPrivate(dataDir: string): void {
  process.umask(forOthers);
  // A folder that cannot be made or listed is a matter for whoever needs it, which with pictures in S3 may be nobody.
  tolerant(() => mkdirSync(dataDir, { recursive: true }));
  tolerant(() => close(dataDir, isPassedByPostgres(dataDir) ? groupPasses : 0));
  for (const name of tolerant(() => readdirSync(dataDir)) ?? []) tolerant(() => close(join(dataDir, name), 0));
}

/** PostgreSQL does not run as root, so that root's data folder lets the group of PostgreSQL's user through to the database. */
function isPassedByPostgres(dataDir: string): boolean {
  const cluster = lstatSync(join(dataDir, 'postgres'), { throwIfNoEntry: false });
  return process.getuid?.() === 0 && cluster !== undefined && cluster.uid !== 0;
}

function close(path: string, kept: number): void {
  const status = lstatSync(path);
  if (status.isSymbolicLink() || (status.mode & forOthers & ~kept) === 0) return;
  chmodSync(path, status.mode & 0o777 & ~(forOthers & ~kept));
}

/** Passes over what is another user's, who has to close it, and what is gone by now. */
function tolerant<T>(act: () => T): T | undefined {
  try {
    return act();
  } catch (error) {
    if (['EACCES', 'EPERM', 'ENOENT', 'EROFS'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined;
    throw error;
  }
}
