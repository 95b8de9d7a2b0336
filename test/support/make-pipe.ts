import { execFileSync } from 'node:child_process';
import { rm } from 'node:fs/promises';

/** Puts a pipe in place of a file, which nobody ever writes to. */
export async function makePipe(path: string): Promise<void> {
  await rm(path, { force: true });
  execFileSync('mkfifo', [path]);
}
