import { type ChildProcess, type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { misconfiguredExitCode, StartError } from '@app/process';
import { type LogFile, readLogLine } from './log';
import { HangDetector, hangTimeoutMs } from './hang-detector';

const firstRestartMs = 500;
const longestRestartMs = 30_000;
/** After this long without a crash, the next crash counts as the first. */
const stableMs = 60_000;
/** After this many crashes before the process was ready, a restart does not help. */
const maxCrashesBeforeReady = 3;
const pollMs = 50;
const sayEveryMs = 10_000;

const endedWith = (code: number | string | null | undefined): string => `exit code ${code}`;
const misconfigured = endedWith(misconfiguredExitCode);

/** A process of the service, and how to reach it. */
export interface ProcessDescription {
  name: string;
  /** The compiled file. */
  main: string;
  env: NodeJS.ProcessEnv;
  /** Returns 200 when the process can do its work. */
  readyUrl: string;
  /** Answers as long as the process's event loop runs. */
  liveUrl: string;
  /** In development all log lines are shown, and a process that is paused at a breakpoint must not be killed. */
  isDevelopment: boolean;
}

/** A child process that is restarted when it ends unexpectedly, and killed and restarted when it hangs. */
export class SupervisedProcess {
  private child?: ChildProcess;
  private ended?: Promise<unknown>;
  private running?: Promise<void>;
  private isListening = false;
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
   * @throws StartError when it repeatedly ends before, or says by its exit code that a restart does not help.
   */
  async start(): Promise<void> {
    this.running = this.keepRunning();
    const { name, readyUrl } = this.description;
    let saidAt = performance.now();
    while (!this.stopping.signal.aborted) {
      if (this.failure) throw this.failure;
      // Until the process itself listens, another program may answer there.
      if (this.isListening && (await isAnswered(readyUrl))) break;
      if (performance.now() - saidAt > sayEveryMs) {
        this.say(`Still waiting for the ${name} (${this.log.path}) …`);
        saidAt = performance.now();
      }
      await delay(pollMs);
    }
    this.isReady = true;
  }

  /** Asks the process to finish its work and end; it is killed after the deadline, or when `forceStop` aborts. */
  async stop(deadlineMs: number, forceStop: AbortSignal): Promise<void> {
    this.stopping.abort();
    this.child?.kill('SIGTERM');
    const kill = (): void => void this.child?.kill('SIGKILL');
    const timer = setTimeout(kill, deadlineMs);
    if (forceStop.aborted) kill();
    forceStop.addEventListener('abort', kill);
    await this.ended;
    await this.running;
    clearTimeout(timer);
    forceStop.removeEventListener('abort', kill);
    await this.log.close();
  }

  private async keepRunning(): Promise<void> {
    const { name } = this.description;
    for (let crashes = 0; !this.stopping.signal.aborted;) {
      const startedAt = Date.now();
      const reason = await this.runOnce();
      if (this.stopping.signal.aborted) return;
      if (!this.isReady && reason === misconfigured) {
        const sentence = `The ${name} does not start with these settings; its log is ${this.log.path}.`;
        this.failure = new StartError(sentence, misconfiguredExitCode);
        return;
      }
      crashes = Date.now() - startedAt > stableMs ? 1 : crashes + 1;
      if (!this.isReady && crashes >= maxCrashesBeforeReady) {
        this.failure = new StartError(`The ${name} does not start (${reason}); its log is ${this.log.path}.`);
        return;
      }
      const waitMs = Math.min(firstRestartMs * 2 ** (crashes - 1), longestRestartMs);
      const sentence = `The ${name} ended (${reason}) and is restarted in ${waitMs / 1000} s.`;
      this.say(sentence);
      this.log.write(JSON.stringify({ level: 50, time: new Date().toISOString(), process: 'launcher', msg: sentence }));
      await delay(waitMs, undefined, { signal: this.stopping.signal }).catch(() => undefined);
    }
  }

  /** @returns why it ended. */
  private async runOnce(): Promise<string> {
    const { main, env, liveUrl, isDevelopment } = this.description;
    // A session of its own keeps Ctrl-C away, because the launcher ends the processes in order. The IPC channel shows
    // when the launcher has ended.
    const child = spawn(process.execPath, ['--enable-source-maps', main], {
      env,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    const { stdout, stderr } = child as ChildProcessWithoutNullStreams;
    this.child = child;
    child.once('message', () => (this.isListening = true));
    const ended = once(child, 'close').then(
      ([code, signal]: (number | string | null)[]) => String(signal ?? endedWith(code)),
      (error: Error) => error.message,
    );
    this.ended = ended;
    let isSilent = false;
    const watch = new HangDetector(liveUrl, () => {
      isSilent = true;
      // A hung event loop would not handle SIGTERM.
      child.kill('SIGKILL');
    });
    if (!isDevelopment) watch.start();
    this.stopping.signal.addEventListener('abort', () => watch.stop(), { once: true });
    for (const stream of [stdout, stderr])
      createInterface({ input: stream }).on('line', (line) => this.handleLine(line));
    const reason = await ended;
    watch.stop();
    this.isListening = false;
    return isSilent ? `killed, because it did not answer for ${hangTimeoutMs / 1000} s` : reason;
  }

  /** Everything goes to the log; startup messages and warnings also go to the terminal. */
  private handleLine(line: string): void {
    this.log.write(line);
    const { name, isDevelopment } = this.description;
    const { text, isWarning } = readLogLine(line);
    if (isWarning || !this.isReady || isDevelopment) this.say(`${name}: ${text}`);
  }
}

async function isAnswered(url: string): Promise<boolean> {
  const answer = await fetch(url, { signal: AbortSignal.timeout(5_000) }).catch(() => undefined);
  await answer?.body?.cancel();
  return answer?.ok ?? false;
}
