import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isAlive } from '@app/process';

/** A process that is silent for this long is considered hung. */
const patienceMs = 15_000;
/** If the last check was longer ago than this, the machine was asleep. */
const suspendedMs = 30_000;
/** Time limit of the request: a slow process is not hung. */
const requestTimeoutMs = 10_000;
const file = join(tmpdir(), 'darkroom-health.json');

/** State that one check leaves for the next. */
interface State {
  /** The process that has answered; one that has not is still starting, and is left alone. */
  pid: number;
  askedAt: number;
  silentSince?: number;
}

/**
 * `health-check <main file> <variable with the port>`: the HEALTHCHECK of the images, and what the unit
 * darkroom-health@ runs. Docker only marks a container as unhealthy, and restarts one that has ended. So this kills a
 * process whose event loop hangs, and the restart policy starts it again.
 */
async function main(mainFile: string, variable: string): Promise<number> {
  const pid = processOf(mainFile);
  const url = `http://127.0.0.1:${process.env[variable]}/health/live`;
  const answers = await isAlive(url, requestTimeoutMs);
  const now = Date.now();
  if (pid === undefined) return 1;
  if (answers) {
    write({ pid, askedAt: now });
    return 0;
  }
  const last = read();
  if (last?.pid !== pid) return 1;
  const silentSince = now - last.askedAt > suspendedMs ? now : (last.silentSince ?? last.askedAt);
  write({ pid, askedAt: now, silentSince });
  if (now - silentSince < patienceMs) return 1;
  process.stderr.write(`It did not answer for ${patienceMs / 1000} s and is killed.\n`);
  // The kernel does not let a container's first process be killed from inside: the image needs --init, or `init: true`.
  if (pid !== 1) process.kill(pid, 'SIGKILL');
  return 1;
}

function processOf(mainFile: string): number | undefined {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid);
  const found = pids.find((pid) => {
    try {
      const [program, ...words] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
      // Neither its init process, which has the same command line, nor that of a container on this host.
      const isOurs = statSync(`/proc/${pid}`).uid === process.getuid!();
      return isOurs && /(^|\/)node$/.test(program) && words.includes(mainFile);
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

/** If the state cannot be stored, nothing is remembered, and nothing is killed. */
function write(state: State): void {
  try {
    writeFileSync(file, JSON.stringify(state), { mode: 0o600 });
  } catch {
    // A file system that is full or read-only.
  }
}

const [, , mainFile, variable] = process.argv;
void main(mainFile, variable).then((code) => process.exit(code));
