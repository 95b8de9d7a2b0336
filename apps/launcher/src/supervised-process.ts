import type { ChildProcess, ChildProcessWithoutNullStreams } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import type { LogFile } from './log-file';
import { LifeWatch, patienceMs } from './life-watch';
import { readLogLine } from './log-line';
import { StartError } from './start-error';

const firstRestartMs = 500;
const longestRestartMs = 30_000;
/** After this long without a crash the next one counts as the first again. */
const steadyMs = 60_000;
/** So many ends before the first sign of life mean that a restart does not help. */
const patience = 3;
const pollMs = 50;

/** What a process of the service is and how it is reached. */
export interface ProcessDescription {
  name: string;
  /** The compiled file to run. */
  main: string;
  env: NodeJS.ProcessEnv;
  /** Answers 200 when the process can do its work. */
  readyUrl: string;
  /** Answers as long as the process's event loop turns. */
  liveUrl: string;
  /** A developer reads every log line, and may hold the process at a breakpoint: silence is no reason to kill it. */
  isDevelopment: boolean;
}

/** A child process that is started again when it ends unasked, and killed and started again when it falls silent. */
export class SupervisedProcess {
  private child?: ChildProcess;
  private ended?: Promise<unknown>;
  private running?: Promise<void>;
  private isReady = false;
  private failure?: StartError;
  private readonly stopping = new AbortController();

  constructor(
    private readonly description: ProcessDescription,
    private readonly log: LogFile,
    private readonly say: (line: string) => void,
  ) {}

  /**
   * Starts the process and resolves when it can do its work.
   * @throws StartError when it ends again and again instead.
   */
  async start(): Promise<void> {
    this.running = this.keepRunning();
    const { name, readyUrl } = this.description;
    for (let waitedMs = 0; !this.stopping.signal.aborted; waitedMs += pollMs) {
      if (this.failure) throw this.failure;
      const answer = await fetch(readyUrl, { signal: AbortSignal.timeout(5_000) }).catch(() => undefined);
      await answer?.body?.cancel();
      if (answer?.ok) break;
      if (waitedMs > 0 && waitedMs % 10_000 === 0) this.say(`Still waiting for the ${name} (${this.log.path}) …`);
      await delay(pollMs);
    }
    this.isReady = true;
  }

  /** Asks the process to finish what it does and end; after the deadline, or when `hurry` aborts, it is killed. */
  async stop(deadlineMs: number, hurry: AbortSignal): Promise<void> {
    this.stopping.abort();
    this.child?.kill('SIGTERM');
    const kill = (): void => void this.child?.kill('SIGKILL');
    const timer = setTimeout(kill, deadlineMs);
    if (hurry.aborted) kill();
    hurry.addEventListener('abort', kill);
    await this.ended;
    await this.running;
    clearTimeout(timer);
    hurry.removeEventListener('abort', kill);
    await this.log.close();
  }

  private async keepRunning(): Promise<void> {
    const { name } = this.description;
    for (let crashes = 0; !this.stopping.signal.aborted;) {
      const startedAt = Date.now();
      const reason = await this.runOnce();
      if (this.stopping.signal.aborted) return;
      crashes = Date.now() - startedAt > steadyMs ? 1 : crashes + 1;
      if (!this.isReady && crashes >= patience) {
        this.failure = new StartError(`The ${name} does not start (${reason}); its words are in ${this.log.path}.`);
        return;
      }
      const waitMs = Math.min(firstRestartMs * 2 ** (crashes - 1), longestRestartMs);
      const sentence = `The ${name} ended (${reason}) and is started again in ${waitMs / 1000} s.`;
      this.say(sentence);
      this.log.write(JSON.stringify({ level: 50, time: new Date().toISOString(), process: 'launcher', msg: sentence }));
      await delay(waitMs, undefined, { signal: this.stopping.signal }).catch(() => undefined);
    }
  }

  /** @returns how it ended. */
  private async runOnce(): Promise<string> {
    const { main, env, liveUrl, isDevelopment } = this.description;
    // A session of its own keeps Ctrl-C away: the launcher says who ends when. The channel tells of the launcher's end.
    const child = spawn(process.execPath, ['--enable-source-maps', main], {
      env,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    const { stdout, stderr } = child as ChildProcessWithoutNullStreams;
    this.child = child;
    const ended = once(child, 'close').then(
      ([code, signal]: (number | string | null)[]) => String(signal ?? `exit code ${code}`),
      (error: Error) => error.message,
    );
    this.ended = ended;
    let isSilent = false;
    const watch = new LifeWatch(liveUrl, () => {
      isSilent = true;
      // Its event loop would not hear of SIGTERM.
      child.kill('SIGKILL');
    });
    if (!isDevelopment) watch.start();
    this.stopping.signal.addEventListener('abort', () => watch.stop(), { once: true });
    for (const stream of [stdout, stderr]) createInterface({ input: stream }).on('line', (line) => this.hear(line));
    const reason = await ended;
    watch.stop();
    return isSilent ? `killed, for it had answered nothing for ${patienceMs / 1000} s` : reason;
  }

  /** Everything goes to the log; what happens at start and what needs attention goes to the terminal too. */
  private hear(line: string): void {
    this.log.write(line);
    const { name, isDevelopment } = this.description;
    const { text, isWarning } = readLogLine(line);
    if (isWarning || !this.isReady || isDevelopment) this.say(`${name}: ${text}`);
  }
}
