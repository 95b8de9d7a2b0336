import { type ChildProcess, fork } from 'node:child_process';
import { getPriority, setPriority } from 'node:os';

const stderrKept = 2_000;
/** Environment variables that a child gets; it needs no secret. */
const passedVariables = ['PATH', 'LD_LIBRARY_PATH', 'DYLD_LIBRARY_PATH', 'SystemRoot', 'TMPDIR', 'TEMP', 'NODE_ENV'];

interface ChildOptions {
  /** The compiled file. */
  file: string;
  /** Added to the parent's nice value. */
  niceness: number;
  execArgv?: readonly string[];
  /** Further variables of its parent's that it gets. */
  passed?: readonly string[];
  env: Readonly<Record<string, string>>;
}

/** A child process, and the end of its stderr, or why it did not start. */
export interface Child {
  process: ChildProcess;
  stderr: () => string;
}

/** Starts a child process at lower priority, with an IPC channel and no secret of its parent's. */
export function startChild({ file, niceness, execArgv = [], passed = [], env }: ChildOptions): Child {
  const names = [...passedVariables, ...passed];
  const inherited = names.flatMap((key) => (process.env[key] === undefined ? [] : [[key, process.env[key]]]));
  const child = fork(file, {
    execArgv: ['--enable-source-maps', ...execArgv],
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    env: { ...(Object.fromEntries(inherited) as NodeJS.ProcessEnv), ...env },
  });
  // Before it has created its threads, which inherit it.
  if (child.pid !== undefined) lowerPriority(child.pid, niceness);
  let stderr = '';
  child.stderr?.on('data', (chunk: Buffer) => (stderr = `${stderr}${chunk.toString()}`.slice(-stderrKept)));
  child.once('error', ({ message }) => (stderr = message));
  return { process: child, stderr: () => stderr };
}

function lowerPriority(pid: number, niceness: number): void {
  try {
    setPriority(pid, Math.min(getPriority() + niceness, 19));
  } catch {
    // It has ended already, or the system does not allow it.
  }
}
