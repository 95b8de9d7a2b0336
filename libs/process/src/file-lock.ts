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

/** The holder of a lock, and what it publishes. */
export interface LockHolder {
  pid: number;
  identity: string;
  host: string;
  /** ISO 8601. */
  since: string;
  /** Unique for each time that a lock is taken. */
  key: string;
  /** Address at which the holder serves, once it does. */
  url?: string;
}

/** For a lock shared by several machines: the holder sends heartbeats. */
export interface Lease {
  /** Called when another process took the lock over, for example after this one was suspended for minutes. */
  onLost: () => void;
}

/** The lock belongs to a live process, or one is just taking it over. */
export class LockHeldError extends Error {
  constructor(
    readonly file: string,
    readonly holder: LockHolder,
  ) {
    super(`${file} is held by process ${holder.pid}.`);
    this.name = 'LockHeldError';
  }
}

/** Several processes want a leased lock, and it is unclear which one has it: a retry may succeed. */
export class LockContendedError extends Error {
  constructor(readonly file: string) {
    super(`${file} is wanted by several processes at once.`);
    this.name = 'LockContendedError';
  }
}

/** Interval at which a holder touches its leased lock, so that its death is noticed on other machines. */
const beatMs = 5_000;
/** A leased lock that was not touched for this long has no live holder, whatever its process id says. */
const staleMs = 120_000;

/** Without a holder if it cannot be read. */
interface Found {
  holder?: LockHolder;
  isDead: boolean;
}
type Inspect = (path: string) => Found | undefined;

/**
 * A file that says which process may use or change something. It outlives `kill -9` and a reboot, but is then no longer
 * valid: the holder is identified by process id and start time. A leased lock, which other machines must understand
 * too, identifies it by host and process id, and is valid as long as it is touched.
 */
export class FileLock {
  private readonly timer?: NodeJS.Timeout;

  private constructor(
    private readonly file: string,
    private holder: LockHolder,
    /** Whether the last holder ended without releasing the lock. */
    readonly takenOver: boolean,
    lease?: Lease,
  ) {
    if (lease) this.timer = setInterval(() => this.beat(lease.onLost), beatMs).unref();
  }

  /**
   * @throws LockHeldError when a live process (this one included) holds it.
   * @throws LockContendedError with a lease only: only time shows that a holder is dead, so this call
   * does not retry by itself.
   */
  static acquire(file: string, lease?: Lease): FileLock {
    const { pid } = process;
    const identity = processIdentity(pid) ?? '';
    const holder = { pid, identity, host: hostname(), since: new Date().toISOString(), key: randomUUID() };
    const own = writeBeside(file, holder, lease ? 0o644 : 0o600);
    try {
      for (;;) {
        if (tryPlace(own, file)) return new FileLock(file, holder, false, lease);
        if (tryTakeOver(own, file, lease ? inspectLeased : inspect)) return new FileLock(file, holder, true, lease);
        if (lease) throw new LockContendedError(file);
      }
    } finally {
      rmSync(own, { force: true });
    }
  }

  /** Of a lock without a lease; undefined when it is free. */
  static holder(file: string): LockHolder | undefined {
    const found = inspect(file);
    return found?.isDead ? undefined : found?.holder;
  }

  publish(url: string): void {
    this.holder = { ...this.holder, url };
    // The address of a database contains its password.
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
 * Replaces the lock of a dead process by ours. Only the process that creates the second lock file may check whether the
 * holder is dead and replace the lock, so that nobody removes a lock that another process has just created.
 * @returns false when another process was quicker, or died while doing the same.
 * @throws LockHeldError when a live process holds the lock, or is just taking it over.
 */
function tryTakeOver(own: string, file: string, lookAt: Inspect): boolean {
  const guard = `${file}.takeover`;
  if (!tryPlace(own, guard)) {
    const other = lookAt(guard);
    if (other?.isDead) discard(guard, lookAt);
    else if (other?.holder) throw new LockHeldError(file, other.holder);
    return false;
  }
  try {
    const found = lookAt(file);
    if (found?.holder && !found.isDead) throw new LockHeldError(file, found.holder);
    if (found?.isDead) discard(file, lookAt);
    return tryPlace(own, file);
  } finally {
    rmSync(guard, { force: true });
  }
}

/** Moves a dead holder's file away; puts it back if another process took the lock between the check and the move. */
function discard(path: string, lookAt: Inspect): void {
  const aside = `${path}.${randomUUID()}`;
  try {
    renameSync(path, aside);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return;
    throw error;
  }
  try {
    if (lookAt(aside)?.isDead === false) tryPlace(aside, path);
  } finally {
    rmSync(aside, { force: true });
  }
}

/** Creates a complete lock file in one step, without replacing another, so that no reader sees it empty. */
function tryPlace(own: string, path: string): boolean {
  try {
    try {
      linkSync(own, path);
    } catch (error) {
      // File systems without hard links (exFAT, some network mounts) still support exclusive creation.
      if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'].includes(codeOf(error) ?? '')) throw error;
      copyFileSync(own, path, constants.COPYFILE_EXCL);
    }
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw error;
  }
}

function inspect(path: string): Found | undefined {
  if (!statSync(path, { throwIfNoEntry: false })) return undefined;
  const holder = read(path);
  return { holder, isDead: !holder?.identity || processIdentity(holder.pid) !== holder.identity };
}

/** Processes of another machine are unknown here, as is the writer of an unreadable file: then the time decides. */
function inspectLeased(path: string): Found | undefined {
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
