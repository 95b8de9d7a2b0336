import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/**
 * Tells apart processes that had the same id one after another, by the start time and the boot.
 * @returns undefined when no such process runs
 */
export function processIdentity(pid: number): string | undefined {
  if (!isRunning(pid)) return undefined;
  try {
    if (process.platform !== 'linux')
      return execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)])
        .toString()
        .trim();
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name in parentheses may contain spaces; the state is the first and the start time the
    // twentieth field after it.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (fields[0] === 'Z') return undefined;
    return `${fields[19]}@${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}`;
  } catch {
    return undefined;
  }
}

/** The command line of a process; empty when it is gone or hidden from us. */
export function processCommand(pid: number): string[] {
  try {
    if (process.platform !== 'linux')
      return execFileSync('ps', ['-ww', '-o', 'command=', '-p', String(pid)])
        .toString()
        .trim()
        .split(' ');
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1);
  } catch {
    return [];
  }
}

/** Whether the process exists, even if it belongs to another user. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
