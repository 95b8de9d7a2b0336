import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { copyFile, link, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { onDisk } from './disk-space';
import { ModelStoreError, systemCode } from './model-store-error';

/** A holder touches its lock this often, so that one that died on another machine is recognised. */
const beatMs = 5_000;
/** A lock that was not touched for this long has no living holder, whatever its process id says. */
const staleMs = 120_000;

interface Holder {
  pid: number;
  host: string;
  since: string;
}

/** A lock file that lets one process at a time change a model. A dead process's lock is taken over. */
export class FolderLock {
  private readonly timer: NodeJS.Timeout;

  private constructor(
    private readonly path: string,
    private readonly content: string,
    onLost: () => void,
  ) {
    this.timer = setInterval(() => void this.beat(onLost), beatMs);
    this.timer.unref();
  }

  /**
   * @param onLost called when another process took the lock over, which happens to one that was stopped for minutes.
   * @throws ModelStoreError `ModelLocked` naming the process that holds it.
   */
  static async acquire(path: string, what: string, onLost: () => void): Promise<FolderLock> {
    const holder: Holder = { pid: process.pid, host: hostname(), since: new Date().toISOString() };
    const content = `${JSON.stringify({ ...holder, key: randomBytes(8).toString('hex') })}\n`;
    const own = `${path}.${randomBytes(6).toString('hex')}`;
    await onDisk(writeFile(own, content));
    try {
      if ((await linked(own, path)) || (await takeOver(own, path, what))) return new FolderLock(path, content, onLost);
      throw new ModelStoreError('ModelLocked', `${what} is being changed by several processes at once; try again.`);
    } finally {
      await rm(own, { force: true });
    }
  }

  async release(): Promise<void> {
    clearInterval(this.timer);
    if (await this.isOurs()) await rm(this.path, { force: true });
  }

  private async beat(onLost: () => void): Promise<void> {
    if (!(await this.isOurs())) {
      clearInterval(this.timer);
      onLost();
      return;
    }
    const now = new Date();
    await utimes(this.path, now, now).catch(() => undefined);
  }

  private async isOurs(): Promise<boolean> {
    return (await readFile(this.path, 'utf8').catch(() => '')) === this.content;
  }
}

/** Creates the lock with its content in one step, so that a reader never sees it empty. */
async function linked(own: string, path: string): Promise<boolean> {
  try {
    await link(own, path).catch(async (error: unknown) => {
      // File systems without hard links (exFAT, some network mounts) still create exclusively.
      if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'].includes(systemCode(error) ?? '')) throw error;
      await copyFile(own, path, constants.COPYFILE_EXCL);
    });
    return true;
  } catch (error) {
    if (systemCode(error) === 'EEXIST') return false;
    throw error;
  }
}

/**
 * Puts our lock in the place of a dead process's. Only one at a time, the one that creates the second lock file, may look whether
 * it is dead and replace it; so none can take away the lock that another has just put there.
 */
async function takeOver(own: string, path: string, what: string): Promise<boolean> {
  const guard = `${path}.takeover`;
  if (!(await linked(own, guard))) {
    if ((await describe(guard))?.stale) await rm(guard, { force: true });
    return false;
  }
  try {
    const found = await describe(path);
    if (found && !found.stale) throw lockedBy(found.holder, what);
    if (found) await rm(path, { force: true });
    return await linked(own, path);
  } finally {
    await rm(guard, { force: true });
  }
}

function lockedBy(holder: Holder | undefined, what: string): ModelStoreError {
  const who = holder ? `process ${holder.pid} on ${holder.host} since ${holder.since}` : 'another process';
  return new ModelStoreError('ModelLocked', `${what} is being changed by ${who}; wait for it to end.`);
}

async function describe(path: string): Promise<{ holder: Holder | undefined; stale: boolean } | undefined> {
  try {
    const [content, { mtimeMs }] = await Promise.all([readFile(path, 'utf8'), stat(path)]);
    const holder = parse(content);
    const dead = holder?.host === hostname() && !isAlive(holder.pid);
    return { holder, stale: dead || Date.now() - mtimeMs > staleMs };
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

function parse(content: string): Holder | undefined {
  try {
    const { pid, host, since } = JSON.parse(content) as Partial<Holder>;
    return Number.isInteger(pid) && host && since ? { pid: pid as number, host, since } : undefined;
  } catch {
    return undefined;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return systemCode(error) === 'EPERM';
  }
}
