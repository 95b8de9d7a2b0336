import { randomUUID } from 'node:crypto';
import {
  constants,
  copyFileSync,
  linkSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { isRunning, processIdentity } from './process-identity';

/** Who holds a lock, and what the holder wants others to know. */
export interface LockHolder {
  pid: number;
  identity: string;
  host: string;
  /** When the lock was taken, in ISO 8601. */
  since: string;
  /** Another one for each time that a lock is taken. */
  key: string;
  /** Address under which the holder serves, once it does. */
  url?: string;
}

/** For a lock that processes on several machines may want: the holder says at intervals that it lives. */
export interface Lease {
  /** Called when another process took the lock over, which happens to one that was stopped for minutes. */
  onLost: () => void;
}

/** The lock belongs to a process that is alive, or is just being taken over by one. */
export class LockHeldError extends Error {
  constructor(
    readonly file: string,
    readonly holder: LockHolder,
  ) {
    super(`${file} is held by process ${holder.pid}.`);
    this.name = 'LockHeldError';
  }
}

/** Several processes want a leased lock, and which of them has it cannot be told: the next try may succeed. */
export class LockContendedError extends Error {
  constructor(readonly file: string) {
    super(`${file} is wanted by several processes at once.`);
    this.name = 'LockContendedError';
  }
}

/** A holder touches its leased lock this often, so that one that died on another machine is recognised. */
const beatMs = 5_000;
/** A leased lock that was not touched for this long has no living holder, whatever its process id says. */
const staleMs = 120_000;

/** What lies at a lock's path: no holder where the file does not tell. */
interface Found {
  holder?: LockHolder;
  isDead: boolean;
}
type Look = (path: string) => Found | undefined;

/**
 * A file that says which process may use or change something. It survives `kill -9` and a reboot, after which it counts for nothing:
 * the holder is known by process id and moment of birth. With a lease, which another machine can judge too, it is known by host and
 * process, and by how lately it said that it lives.
 */
export class FileLock {
  private readonly timer?: NodeJS.Timeout;

  private constructor(
    private readonly file: string,
    private holder: LockHolder,
    /** Whether the last holder ended without letting go. */
    readonly takenOver: boolean,
    lease?: Lease,
  ) {
    if (lease) this.timer = setInterval(() => this.beat(lease.onLost), beatMs).unref();
  }

  /**
   * @throws LockHeldError when a live process (this one included) holds it.
   * @throws LockContendedError with a lease only: time alone tells that a holder is dead, so that nobody tries twice at once.
   */
  static acquire(file: string, lease?: Lease): FileLock {
    const { pid } = process;
    const identity = processIdentity(pid) ?? '';
    const holder = { pid, identity, host: hostname(), since: new Date().toISOString(), key: randomUUID() };
    const own = writeBeside(file, holder, lease ? 0o644 : 0o600);
    try {
      for (;;) {
        if (isPlaced(own, file)) return new FileLock(file, holder, false, lease);
        if (isTakenOver(own, file, lease ? lookAtLeased : look)) return new FileLock(file, holder, true, lease);
        if (lease) throw new LockContendedError(file);
      }
    } finally {
      rmSync(own, { force: true });
    }
  }

  /** The live holder of a lock without a lease, or undefined when it is free. */
  static holder(file: string): LockHolder | undefined {
    const found = look(file);
    return found?.isDead ? undefined : found?.holder;
  }

  /** Tells others the address under which the holder serves. */
  publish(url: string): void {
    this.holder = { ...this.holder, url };
    // The address of a database holds its password.
    renameSync(writeBeside(this.file, this.holder, 0o600), this.file);
  }

  release(): void {
    clearInterval(this.timer);
    if (this.isOurs()) rmSync(this.file, { force: true });
  }

  private beat(onLost: () => void): void {
    if (!this.isOurs()) {
      clearInterval(this.timer);
      onLost();
      return;
    }
    try {
      const now = new Date();
      utimesSync(this.file, now, now);
    } catch {
      // The next beat may succeed.
    }
  }

  private isOurs(): boolean {
    return read(this.file)?.key === this.holder.key;
  }
}

/**
 * Puts our lock in the place of a dead process's. Only one at a time, the one that creates the second lock file, may look whether it
 * is dead and replace it; so none can take away the lock that another has just put there.
 * @returns false when another was quicker or died while it did the same.
 * @throws LockHeldError when a process that is alive holds the lock, or is just taking it over.
 */
function isTakenOver(own: string, file: string, lookAt: Look): boolean {
  const guard = `${file}.takeover`;
  if (!isPlaced(own, guard)) {
    const other = lookAt(guard);
    if (other?.isDead) discard(guard, lookAt);
    else if (other?.holder) throw new LockHeldError(file, other.holder);
    return false;
  }
  try {
    const found = lookAt(file);
    if (found?.holder && !found.isDead) throw new LockHeldError(file, found.holder);
    if (found?.isDead) discard(file, lookAt);
    return isPlaced(own, file);
  } finally {
    rmSync(guard, { force: true });
  }
}

/** Moves a dead holder's file away; puts it back when another process took the lock between the look and the move. */
function discard(path: string, lookAt: Look): void {
  const aside = `${path}.${randomUUID()}`;
  try {
    renameSync(path, aside);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return;
    throw error;
  }
  try {
    if (lookAt(aside)?.isDead === false) isPlaced(aside, path);
  } finally {
    rmSync(aside, { force: true });
  }
}

/** Creates a lock with its content in one step, so that a reader never sees it empty, and never replaces another. */
function isPlaced(own: string, path: string): boolean {
  try {
    try {
      linkSync(own, path);
    } catch (error) {
      // File systems without hard links (exFAT, some network mounts) still create exclusively.
      if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'].includes(codeOf(error) ?? '')) throw error;
      copyFileSync(own, path, constants.COPYFILE_EXCL);
    }
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw error;
  }
}

/** A lock without a lease that does not tell its holder has none. */
function look(path: string): Found | undefined {
  if (!statSync(path, { throwIfNoEntry: false })) return undefined;
  const holder = read(path);
  return { holder, isDead: !holder?.identity || processIdentity(holder.pid) !== holder.identity };
}

/** Which processes another machine has is not known here, nor is who wrote what cannot be read: there the time decides. */
function lookAtLeased(path: string): Found | undefined {
  const status = statSync(path, { throwIfNoEntry: false });
  if (!status) return undefined;
  const holder = read(path);
  const hasEnded = holder?.host === hostname() && !isRunning(holder.pid);
  return { holder, isDead: hasEnded || Date.now() - status.mtimeMs > staleMs };
}

function read(path: string): LockHolder | undefined {
  try {
    const holder = JSON.parse(readFileSync(path, 'utf8')) as LockHolder | null;
    return Number.isInteger(holder?.pid) ? holder! : undefined;
  } catch {
    return undefined;
  }
}

function writeBeside(file: string, holder: LockHolder, mode: number): string {
  const beside = `${file}.${randomUUID()}`;
  writeFileSync(beside, JSON.stringify(holder), { mode });
  return beside;
}

const codeOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException).code;
