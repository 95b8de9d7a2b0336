import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';

/** Folder of the compiled tree. */
export const dist = resolve(__dirname, '..');

/** A log line of a process of the service. */
export interface LogLine {
  level: number;
  msg: string;
  url?: string;
  healthPort?: number;
  taskId?: string;
}

/** A process of the service. */
export interface RunningChild {
  child: ChildProcess;
  /** The line that said that it is ready. */
  ready: LogLine;
}

/**
 * Starts the api or the worker, and resolves when it says that it is ready. Its warnings and errors are shown.
 * @param onLine is given each of its log lines as it comes
 * @throws Error if it ends before it is ready
 */
export async function startApp(
  app: 'api' | 'inference',
  env: Record<string, string>,
  { args = [], onLine }: { args?: string[]; onLine?: (line: LogLine) => void } = {},
): Promise<RunningChild> {
  const child = spawn(process.execPath, [...args, join(dist, 'apps', app, 'src', 'main.js')], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ready = await new Promise<LogLine>((resolveReady, reject) => {
    child.once('exit', (code) => reject(new Error(`The ${app} ended with ${code}.`)));
    createInterface({ input: child.stdout }).on('line', (text) => {
      const line = JSON.parse(text) as LogLine;
      if (line.level >= 50) process.stderr.write(`${text}\n`);
      if (line.msg === 'api is listening' || line.msg === 'inference is ready') resolveReady(line);
      onLine?.(line);
    });
  });
  return { child, ready };
}

/** Ends processes and waits until they are gone. */
export async function endAll(children: readonly ChildProcess[]): Promise<void> {
  for (const child of children) child.kill('SIGTERM');
  await Promise.all(children.map(async (child) => child.exitCode ?? child.signalCode ?? once(child, 'exit')));
}

/** Runs another bench and returns the JSON that it prints. @throws Error if it fails */
export async function jsonOf<T>(file: string, args: readonly string[]): Promise<T> {
  const child = spawn(process.execPath, [join(dist, 'bench', file), '--json', ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) throw new Error(`bench/${file} ended with ${code}.`);
  return JSON.parse(output) as T;
}
