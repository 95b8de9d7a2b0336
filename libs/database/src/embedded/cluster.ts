import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chown, open, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { ClusterHome } from './cluster-home';

/** Name of the database and of its owner. */
export const databaseName = 'darkroom';

/** The password is stored beside the cluster, in a file that only its owner can read. */
export async function readPassword(home: ClusterHome): Promise<string> {
  const file = join(home.folder, 'password');
  if (!existsSync(file)) {
    const unfinished = `${file}.new`;
    await rm(unfinished, { force: true });
    const handle = await open(unfinished, 'wx', 0o600);
    await handle.writeFile(randomBytes(24).toString('hex'));
    await handle.sync();
    await handle.close();
    if (home.user) await chown(unfinished, home.user.uid, home.user.gid);
    await rename(unfinished, file);
  }
  return (await readFile(file, 'utf8')).trim();
}

/** Made under another name and renamed, so that a crash leaves either no cluster or a complete one. */
export async function createCluster(home: ClusterHome): Promise<void> {
  const data = join(home.folder, 'data');
  if (existsSync(data)) return;
  const unfinished = `${data}.new`;
  await rm(unfinished, { recursive: true, force: true });
  const args = ['-D', unfinished, '--username', databaseName, '--pwfile', join(home.folder, 'password')];
  args.push('--auth', 'scram-sha-256', '--encoding', 'UTF8', '--no-instructions');
  // The built-in collation does not change with the system's libraries, so indexes stay valid.
  args.push('--locale', 'C', '--locale-provider', 'builtin', '--builtin-locale', 'C.UTF-8');
  // More would slow down the guessing of passwords, and each connection; nobody guesses 24 random bytes.
  args.push('--set', 'scram_iterations=1');
  const options = { ...home.user, cwd: home.folder, env: serverEnvironment() };
  await promisify(execFile)(join(home.binaries, 'initdb'), args, options).catch(
    (error: Error & { stderr?: string }) => {
      throw new Error(`PostgreSQL cannot make its files in ${home.folder}: ${error.stderr?.trim() || error.message}`);
    },
  );
  await rename(unfinished, data);
}

/** The server gets none of the service's own environment, which may contain secrets. */
export const serverEnvironment = (): NodeJS.ProcessEnv => ({ PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' });
