import { execFileSync } from 'node:child_process';
import { rm } from 'node:fs/promises';

/** Replaces a file by a pipe that nobody writes to. */
export async function makePipe(path: string): Promise<void> {
  await rm(path, { force: true });
  execFileSync('mkfifo', [path]);
}
