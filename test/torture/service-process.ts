import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';

/** The clone, whether this file runs from its source or from what is built of it. */
export const root = [2, 3]
  .map((levels) => resolve(__dirname, ...Array.from({ length: levels }, () => '..')))
  .find((folder) => existsSync(join(folder, 'package.json')))!;

/** So much of what a process said is kept, for the report of a failure. */
const keptCharacters = 20_000;
const keptErrors = 5;
/** How the log begins a line of an error. */
const errorLine = '{"level":50';
/** It ends what never starts: a row may start several at once, on a machine that has much else to do. */
const startTimeoutMs = 240_000;

export type ServiceName = 'api' | 'inference' | 'launcher';

/** One process of the service, built and started as it is in production. It ends with this one. */
export class ServiceProcess {
  output = '';
  /** What it called an error, the first few. */
  readonly errors: string[] = [];
  /** The exit code, or the signal that ended it. */
  readonly ended: Promise<number | string>;
  private readonly child: ChildProcess;

  constructor(
    readonly name: ServiceName,
    env: Readonly<Record<string, string>>,
    nodeOptions: readonly string[] = [],
  ) {
    const main = join(root, 'dist', 'apps', name, 'src', 'main.js');
    this.child = spawn(process.execPath, [...nodeOptions, main], {
      cwd: root,
      env: { PATH: process.env.PATH, ...env },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    for (const stream of [this.child.stdout!, this.child.stderr!]) {
      stream.on('data', (chunk: Buffer) => (this.output = (this.output + chunk.toString()).slice(-keptCharacters)));
      createInterface(stream).on('line', (line) => {
        if (this.errors.length < keptErrors && line.startsWith(errorLine)) this.errors.push(line);
      });
    }
    this.ended = once(this.child, 'exit').then(
      ([code, signal]: (number | string | null)[]) => signal ?? code ?? 'no code',
    );
  }

  get pid(): number {
    return this.child.pid!;
  }

  get isRunning(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  signal(name: NodeJS.Signals): void {
    this.child.kill(name);
  }

  /** Sends a signal and waits for the end. */
  async end(name: NodeJS.Signals): Promise<number | string> {
    this.signal(name);
    return this.ended;
  }

  /** Resolves when `url` answers 2xx. False: the process ended before. */
  async ready(url: string): Promise<boolean> {
    for (const deadline = Date.now() + startTimeoutMs; Date.now() < deadline; await delay(50)) {
      if (!this.isRunning) return false;
      const answer = await fetch(url, { signal: AbortSignal.timeout(5_000) }).catch(() => undefined);
      await answer?.body?.cancel();
      if (answer?.ok) return true;
    }
    throw new Error(`The ${this.name} was not ready in ${startTimeoutMs} ms:\n${this.output.slice(-2_000)}`);
  }

  /** Resident memory in bytes. */
  residentBytes(): number {
    const status = readFileSync(`/proc/${this.pid}/status`, 'utf8');
    return Number(/VmRSS:\s+(\d+)/.exec(status)![1]) * 1024;
  }

  /** Resident memory after a garbage collection, when the freed pages have been given back; needs `collect.cjs`. */
  async heldBytes(): Promise<number> {
    this.signal('SIGUSR2');
    await delay(4_000);
    return this.residentBytes();
  }
}
