import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { until } from './until';

/** Node's options for a short process beside other tests, which has no idle core for collecting garbage. */
export const quickCollection = ['--single-threaded-gc', '--no-memory-reducer'];

/** Ends what never starts: several may start at once on a busy machine. */
export const startTimeoutMs = 240_000;

/** How each process says where it listens. */
const addresses = {
  api: /"url":"(http:[^"]+)"/,
  inference: /"healthPort":(\d+)/,
  launcher: /curl -s (http:\/\/[^/]+)\//,
};

/** A process of the service, built and started as in production. It ends with this one. */
export class ServiceProcess {
  output = '';
  /** Set by `listening`. */
  url = '';
  /** The exit code or the signal, once all output is there. */
  readonly ended: Promise<number | string>;
  private readonly child: ChildProcess;

  /**
   * Variables that are not given have their defaults.
   * @param under a command that runs it as its child
   * @param checkout whose build runs
   */
  constructor(
    readonly name: keyof typeof addresses,
    env: Readonly<Record<string, string>>,
    nodeOptions: readonly string[] = [],
    under: readonly string[] = [],
    checkout = '.',
  ) {
    const main = resolve(checkout, 'dist', 'apps', name, 'src', 'main.js');
    const [command, ...args] = [...under, process.execPath, ...nodeOptions, main];
    this.child = spawn(command, args, {
      // Pictures are compared, and a GPU's differ. Two threads would spin while they wait for each other.
      env: { PATH: process.env.PATH, DEVICE: 'cpu', INFERENCE_THREADS: '1', ...env },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    for (const stream of [this.child.stdout!, this.child.stderr!])
      stream.on('data', (chunk: Buffer) => (this.output += chunk.toString()));
    this.ended = this.after('close');
  }

  get pid(): number {
    return this.child.pid!;
  }

  get isRunning(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  get lines(): (Record<string, unknown> & { msg: string })[] {
    const whole = this.output.split('\n').filter((line) => line.startsWith('{') && line.endsWith('}'));
    return whole.map((line) => JSON.parse(line) as Record<string, unknown> & { msg: string });
  }

  /** @returns its address. @throws Error if it ends before it listens */
  async listening(): Promise<string> {
    const found = await until(
      async () => {
        if (!this.isRunning) throw new Error(`The ${this.name} ended with ${await this.ended}:\n${this.output}`);
        return addresses[this.name].exec(this.output)?.[1];
      },
      `the ${this.name} listens`,
      startTimeoutMs,
    );
    return (this.url = found.startsWith('http') ? found : `http://127.0.0.1:${found}`);
  }

  signal(name: NodeJS.Signals): void {
    this.child.kill(name);
  }

  /** @returns the exit code, or the signal that ended it */
  async end(name: NodeJS.Signals): Promise<number | string> {
    if (!this.isRunning) return this.ended;
    const exited = this.after('exit');
    this.signal(name);
    return exited;
  }

  residentBytes(): number {
    const status = readFileSync(`/proc/${this.pid}/status`, 'utf8');
    return Number(/VmRSS:\s+(\d+)/.exec(status)![1]) * 1024;
  }

  /** In bytes, after a garbage collection, when freed pages were returned; needs `collect.cjs`. */
  async heldBytes(): Promise<number> {
    this.signal('SIGUSR2');
    await delay(4_000);
    return this.residentBytes();
  }

  private async after(event: 'exit' | 'close'): Promise<number | string> {
    const [code, signal] = (await once(this.child, event)) as [number | null, string | null];
    return signal ?? code ?? 'no code';
  }
}

/** By a folder's path in their command line or environment. */
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
