import { randomUUID } from 'node:crypto';
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { processIdentity } from './process-identity';

/** Who holds a lock, and what the holder wants others to know. */
export interface LockHolder {
  pid: number;
  identity: string;
  /** Address under which the holder serves, once it does. */
  url?: string;
}

/** The lock belongs to a process that is alive. */
export class LockHeldError extends Error {
  constructor(
    readonly file: string,
    readonly holder: LockHolder,
  ) {
    super(`${file} is held by process ${holder.pid}.`);
    this.name = 'LockHeldError';
  }
}

/**
 * A file that says which process owns a folder. It survives `kill -9` and a reboot, after which it counts for nothing:
 * the holder is known by process id and moment of birth.
 */
export class FileLock {
  private constructor(
    private readonly file: string,
    private holder: LockHolder,
    /** Whether the last holder ended without letting go. */
    readonly takenOver: boolean,
  ) {}

  /** @throws LockHeldError when a live process (this one included) holds it. */
  static acquire(file: string): FileLock {
    const holder: LockHolder = { pid: process.pid, identity: processIdentity(process.pid) ?? '' };
    const own = writeBeside(file, holder);
    try {
      for (let takenOver = false; ; takenOver = true) {
        try {
          // A link appears whole or not at all, and never replaces another.
          linkSync(own, file);
          return new FileLock(file, holder, takenOver);
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
        }
        const held = FileLock.holder(file);
        if (held) throw new LockHeldError(file, held);
        discardStale(file);
      }
    } finally {
      rmSync(own, { force: true });
    }
  }

  /** The live holder of a lock, or undefined when it is free. */
  static holder(file: string): LockHolder | undefined {
    const held = read(file);
    return held && processIdentity(held.pid) === held.identity ? held : undefined;
  }

  /** Tells others the address under which the holder serves. */
  publish(url: string): void {
    this.holder = { ...this.holder, url };
    renameSync(writeBeside(this.file, this.holder), this.file);
  }

  release(): void {
    if (read(this.file)?.identity === this.holder.identity) rmSync(this.file, { force: true });
  }
}

/** Moves a dead holder's file away; puts it back when another process took the lock between the look and the move. */
function discardStale(file: string): void {
  const aside = `${file}.${randomUUID()}`;
  try {
    renameSync(file, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw error;
  }
  try {
    if (FileLock.holder(aside)) linkSync(aside, file);
  } finally {
    rmSync(aside, { force: true });
  }
}

function read(file: string): LockHolder | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as LockHolder;
  } catch {
    return undefined;
  }
}

function writeBeside(file: string, holder: LockHolder): string {
  const beside = `${file}.${randomUUID()}`;
  // The address of a database holds its password.
  writeFileSync(beside, JSON.stringify(holder), { mode: 0o600 });
  return beside;
}
