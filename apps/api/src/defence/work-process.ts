// Attack: a file whose inspection takes all the memory or time there is, or ends its process.
import type { ChildProcess } from 'node:child_process';
import { fork } from 'node:child_process';
import { getPriority, setPriority } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';

/** Environment variables of a child. */
export const residentVariable = 'WORK_RESIDENT_MB';
/** Signal with which a child ends itself when it exceeds its memory. */
export const memorySignal = 'SIGUSR2';

/** A job for a child, and its answer. */
export interface WorkOrder {
  id: number;
  order: unknown;
}
export type WorkAnswer = { ready: true } | { id: number; result: unknown } | { id: number; error: { message: string } };

/** Why a job failed: its work threw or took too long or too much memory, or its process died or did not start. */
export type WorkFailure = 'failed' | 'time' | 'memory' | 'died' | 'not started' | 'closed';

/** A failed job. With `died`, `not started` and `closed` a retry may succeed; with the others it would fail again. */
export class WorkError extends Error {
  override readonly name = 'WorkError';

  constructor(
    readonly failure: WorkFailure,
    message: string,
  ) {
    super(message);
  }

  /** Whether the job itself is the cause, so that it would fail again. */
  get isOfTheWork(): boolean {
    return this.failure === 'failed' || this.failure === 'time' || this.failure === 'memory';
  }
}

/** Limits of a child. */
export interface WorkProcessOptions {
  /** For messages: "the <name> process". */
  name: string;
  /** Compiled file to run; it calls `serveWork`. */
  file: string;
  /** Time limit of one job, in milliseconds. */
  timeMs: number;
  /** Limits of V8's heap, and of the whole memory of the process. */
  heapMb: number;
  residentMb: number;
  /** Threads of libuv's pool. */
  threads?: number;
  /** An idle child is ended after this many milliseconds, which frees its memory. */
  idleMs?: number;
  /** Called when a child ended unexpectedly. */
  onDeath?: (reason: string) => void;
}

/** Time for a child to start, on a busy machine. */
const startMs = 60_000;
/** How often a job runs in total when its child dies for another reason. */
const tries = 2;
/** Wait before a child is restarted after one that died, doubled with each in a row. */
const restartMs = { first: 100, most: 10_000 };
/** Added to the parent's nice value: lower priority than requests, but not starved on a busy machine. */
const niceness = 5;
const stderrKept = 2_000;
/** Environment variables that a child gets; it needs no secret. */
const passedVariables = ['PATH', 'LD_LIBRARY_PATH', 'DYLD_LIBRARY_PATH', 'SystemRoot', 'TMPDIR', 'TEMP', 'NODE_ENV'];

interface Running {
  child: ChildProcess;
  ready: Promise<void>;
  stderr: () => string;
}

/**
 * One child process that runs jobs, one at a time, at low priority and within limits of time and memory. It is started
 * by the first job, and again after it ended. A job can only harm its own work.
 */
export class WorkProcess<Order, Result> {
  private running?: Running;
  private isBusy = false;
  private isClosed = false;
  private deathsInRow = 0;
  private nextId = 1;
  private idle?: NodeJS.Timeout;

  constructor(private readonly options: WorkProcessOptions) {}

  /** Id of the child, while there is one. */
  get pid(): number | undefined {
    return this.running?.child.pid;
  }

  /**
   * @param timeMs time limit of this job, if it differs from the usual one.
   * @throws WorkError
   */
  async run(order: Order, timeMs = this.options.timeMs): Promise<Result> {
    if (this.isBusy) throw new Error(`The ${this.options.name} process carries out one order at a time.`);
    this.isBusy = true;
    clearTimeout(this.idle);
    try {
      for (let left = tries - 1; ; left--)
        try {
          const result = await this.runOnce(order, timeMs);
          this.deathsInRow = 0;
          return result;
        } catch (error) {
          // A child that exceeded its time or memory says nothing about the next job.
          if (error instanceof WorkError && error.isOfTheWork) this.deathsInRow = 0;
          if (left === 0 || !(error instanceof WorkError) || error.isOfTheWork || error.failure === 'closed')
            throw error;
        }
    } finally {
      this.isBusy = false;
      this.idle = setTimeout(() => this.stop(), this.options.idleMs ?? 60_000).unref();
    }
  }

  /** Ends the child at once; the current job fails. No other is accepted afterwards. */
  close(): void {
    this.isClosed = true;
    clearTimeout(this.idle);
    this.stop();
  }

  private async runOnce(order: Order, timeMs: number): Promise<Result> {
    const { child, ready, stderr } = await this.started();
    await within(startMs, ready, () => child.kill('SIGKILL'));
    const id = this.nextId++;
    let failure: WorkFailure = 'died';
    const timer = setTimeout(() => {
      failure = 'time';
      child.kill('SIGKILL');
    }, timeMs);
    let answered: (answer: WorkAnswer) => void = () => undefined;
    let ended: (code: number | null, signal: NodeJS.Signals | null) => void = () => undefined;
    try {
      return await new Promise<Result>((resolve, reject) => {
        answered = (answer) => {
          if ('ready' in answer || answer.id !== id) return;
          if ('error' in answer) reject(new WorkError('failed', answer.error.message));
          else resolve(answer.result as Result);
        };
        ended = (code, signal) => {
          if (this.isClosed) failure = 'closed';
          else if (isOutOfMemory(signal, stderr())) failure = 'memory';
          reject(new WorkError(failure, sentence(this.options.name, failure, timeMs, signal ?? `exit code ${code}`)));
        };
        child.on('message', answered);
        // By then all its output has been read.
        child.on('close', ended);
        if (child.connected) child.send({ id, order } satisfies WorkOrder, (error) => error && child.kill('SIGKILL'));
      });
    } finally {
      clearTimeout(timer);
      child.off('message', answered).off('close', ended);
    }
  }

  private async started(): Promise<Running> {
    const { name } = this.options;
    if (!this.running && this.deathsInRow > 0)
      await delay(Math.min(restartMs.first * 2 ** (this.deathsInRow - 1), restartMs.most));
    if (this.isClosed) throw new WorkError('closed', `The ${name} process is closed.`);
    return (this.running ??= this.start());
  }

  private start(): Running {
    const { file, heapMb, residentMb, threads = 2, onDeath, name } = this.options;
    const passed = passedVariables.flatMap((key) => (process.env[key] === undefined ? [] : [[key, process.env[key]]]));
    const child = fork(file, {
      execArgv: ['--enable-source-maps', `--max-old-space-size=${heapMb}`],
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      env: {
        ...(Object.fromEntries(passed) as NodeJS.ProcessEnv),
        UV_THREADPOOL_SIZE: String(threads),
        // Fewer malloc arenas return memory sooner.
        MALLOC_ARENA_MAX: '2',
        [residentVariable]: String(residentMb),
      },
    });
    // Set now, before it has created its threads, which inherit it.
    if (child.pid !== undefined) lowerPriority(child.pid);
    let stderr = '';
    child.stderr?.on('data', (chunk: Buffer) => (stderr = `${stderr}${chunk.toString()}`.slice(-stderrKept)));
    // It must not keep this process alive.
    child.unref();
    child.channel?.unref();
    (child.stderr as unknown as { unref?: () => void }).unref?.();
    const ready = new Promise<void>((resolve, reject) => {
      child.once('message', () => resolve());
      const ended = (how: string): void =>
        reject(
          new WorkError(this.isClosed ? 'closed' : 'not started', `The ${name} process ended at its start: ${how}.`),
        );
      child.once('close', (code, signal) => ended(signal ?? `exit code ${code}`));
      child.once('error', (error) => ended(error.message));
    });
    ready.catch(() => undefined);
    const running: Running = { child, ready, stderr: () => stderr };
    const forget = (): void => {
      // A child that was asked to end is no longer the running one.
      if (this.running !== running) return;
      this.running = undefined;
      this.deathsInRow++;
      child.once('close', (code, signal) => onDeath?.(`${signal ?? `exit code ${code}`} ${stderr}`.trim()));
    };
    child.once('exit', forget);
    child.once('error', forget);
    return running;
  }

  private stop(): void {
    const { running } = this;
    this.running = undefined;
    running?.child.kill('SIGKILL');
  }
}

function lowerPriority(pid: number): void {
  try {
    setPriority(pid, Math.min(getPriority() + niceness, 19));
  } catch {
    // It has ended already, or the system does not allow it: it runs as it is.
  }
}

/** V8 ends the process by itself when its heap is full. */
function isOutOfMemory(signal: NodeJS.Signals | null, stderr: string): boolean {
  return signal === memorySignal || /heap out of memory|memory allocation failed|bad_alloc/i.test(stderr);
}

function sentence(name: string, failure: WorkFailure, timeMs: number, how: string): string {
  if (failure === 'time') return `The work took longer than ${timeMs / 1000} s.`;
  if (failure === 'memory') return 'The work took more memory than it may.';
  return failure === 'closed' ? `The ${name} process is closed.` : `The ${name} process ended: ${how}.`;
}

async function within<T>(ms: number, promise: Promise<T>, late: () => void): Promise<T> {
  const timer = setTimeout(late, ms);
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
  }
}
