import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { until } from './until';

const root = resolve(__dirname, '..', '..');
const main = join(root, 'dist', 'apps', 'launcher', 'src', 'main.js');

/** `npm start` as a process of its own. */
export class RunningLauncher {
  output = '';
  readonly ended: Promise<number | string>;
  private readonly child: ChildProcess;
  private readonly ready: Promise<string>;

  /** Variables that are not given have their defaults. */
  constructor(env: Record<string, string>) {
    this.child = spawn(process.execPath, [main], {
      cwd: root,
      env: { PATH: process.env.PATH, INFERENCE_THREADS: '1', DEVICE: 'cpu', ...env },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    this.child.stdout!.on('data', (chunk: Buffer) => (this.output += chunk.toString()));
    this.child.stderr!.on('data', (chunk: Buffer) => (this.output += chunk.toString()));
    this.ended = once(this.child, 'close').then(
      ([code, signal]: (number | string | null)[]) => signal ?? code ?? 'no code',
    );
    this.ready = once(this.child, 'message').then(([message]: { url: string }[]) => message.url);
  }

  /** Its address, once it accepts requests. */
  async url(): Promise<string> {
    const early = this.ended.then((code) => {
      throw new Error(`The launcher ended with ${code} before it was ready:\n${this.output}`);
    });
    return Promise.race([this.ready, early]);
  }

  /** Sends a signal and resolves with the exit code, or the signal that ended it. */
  async end(signal: NodeJS.Signals): Promise<number | string> {
    this.child.kill(signal);
    return this.ended;
  }
}

/** The processes that use a folder: its path is in their command line or environment. */
export function processesOf(folder: string): { pid: number; command: string }[] {
  return readdirSync('/proc').flatMap((entry) => {
    if (!/^\d+$/.test(entry) || Number(entry) === process.pid) return [];
    try {
      const command = readFileSync(`/proc/${entry}/cmdline`, 'utf8');
      const environment = readFileSync(`/proc/${entry}/environ`, 'utf8');
      return command && (command + environment).includes(folder) ? [{ pid: Number(entry), command }] : [];
    } catch {
      return [];
    }
  });
}

/** Waits until no process uses a folder any more. */
export async function untilNobodyIsLeft(folder: string): Promise<void> {
  await until(async () => processesOf(folder).length === 0, `no process of ${folder} is left`);
}
