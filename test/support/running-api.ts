import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { join, resolve } from 'node:path';

const root = resolve(__dirname, '..', '..');
const main = join(root, 'dist', 'apps', 'api', 'src', 'main.js');

/** A log line of a process. */
export type LogLine = Record<string, unknown> & { msg: string };

/** An api as a process of its own. */
export interface RunningApi {
  url: string;
  /** The log lines so far. */
  lines: LogLine[];
  /** Sends a signal and resolves with the exit code, or the signal that ended it. */
  end(signal: NodeJS.Signals): Promise<number | string>;
}

/** Starts the built api on a free port and resolves when it listens. */
export async function runApi(env: Record<string, string>): Promise<RunningApi> {
  const child = spawn(process.execPath, [main], {
    cwd: root,
    env: { PATH: process.env.PATH, PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const lines: LogLine[] = [];
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
  const ended = once(child, 'close').then(([code, signal]: (number | string | null)[]) => signal ?? code ?? 'no code');
  const url = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', (text) => {
      const line = JSON.parse(text) as LogLine;
      lines.push(line);
      if (line.msg === 'api is listening') resolve(line.url as string);
    });
    void ended.then((code) => reject(new Error(`The api ended with ${code}: ${errors}`)));
  });
  return {
    url,
    lines,
    end(signal) {
      child.kill(signal);
      return ended;
    },
  };
}
