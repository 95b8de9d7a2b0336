import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isAlive } from '@app/process';

/** A process that is silent for so long hangs. */
const patienceMs = 15_000;
/** Beyond this since the last check nobody ran: the machine slept. */
const awayMs = 30_000;
/** An answer counts for as long as there is time for one: a process that is slow does not hang. */
const answerMs = 10_000;
const file = join(tmpdir(), 'darkroom-health.json');

/** What one check leaves for the next. */
interface State {
  /** Of the process that has answered; one that still starts has not, and is left alone. */
  pid: number;
  askedAt: number;
  silentSince?: number;
}

/**
 * `health-check <main file> <variable with the port>`: what the images' HEALTHCHECK runs. Docker only notes that a container is
 * unhealthy and restarts what has ended, so that a process whose event loop hangs is killed here, and the restart policy brings it back.
 */
async function main(mainFile: string, variable: string): Promise<number> {
  const pid = processOf(mainFile);
  const url = `http://127.0.0.1:${process.env[variable]}/health/live`;
  const answers = await isAlive(url, answerMs);
  const now = Date.now();
  if (pid === undefined) return 1;
  if (answers) {
    write({ pid, askedAt: now });
    return 0;
  }
  const last = read();
  if (last?.pid !== pid) return 1;
  const silentSince = now - last.askedAt > awayMs ? now : (last.silentSince ?? last.askedAt);
  write({ pid, askedAt: now, silentSince });
  if (now - silentSince < patienceMs) return 1;
  process.stderr.write(`It has answered nothing for ${patienceMs / 1000} s and is killed.\n`);
  // The kernel keeps the first process of a container from its own kin: the image needs --init, or `init: true`.
  if (pid !== 1) process.kill(pid, 'SIGKILL');
  return 1;
}

function processOf(mainFile: string): number | undefined {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid);
  const found = pids.find((pid) => {
    try {
      const [program, ...words] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
      // Not the init before it, which has the same words.
      return /(^|\/)node$/.test(program) && words.includes(mainFile);
    } catch {
      return false;
    }
  });
  return found === undefined ? undefined : Number(found);
}

function read(): State | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as State;
  } catch {
    return undefined;
  }
}

/** Without a place for it nothing is remembered, and nothing killed. */
function write(state: State): void {
  try {
    writeFileSync(file, JSON.stringify(state), { mode: 0o600 });
  } catch {
    // A file system that is full or read-only.
  }
}

void main(process.argv[2], process.argv[3]).then((code) => process.exit(code));
