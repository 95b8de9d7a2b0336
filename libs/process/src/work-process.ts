// Attack: a file whose inspection takes all the memory or time there is, or ends its process.
import type { ChildProcess } from 'node:child_process';
import { type Child, startChild } from './start-child';

/** Environment variables of a child. */
export const residentVariable = 'WORK_RESIDENT_MB';
/** Signal with which a child ends itself when it exceeds its memory. */
export const memorySignal = 'SIGUSR2';

/** Messages of a child: that it has started, and how its job ended. */
export type WorkAnswer = { ready: true } | { result: unknown } | { error: string };

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
}

interface WorkOptions {
  /** The compiled file; it calls `serveWork`. */
  file: string;
  /** Of one job. */
  timeMs: number;
  /** Of V8's heap; `residentMb` is of the whole process. */
  heapMb: number;
  residentMb: number;
  /** Called when a child ended unexpectedly. */
  onDeath?: (reason: string) => void;
}

/** On a busy machine. */
const startMs = 60_000;
/** Added to the parent's nice value: lower priority than requests, but not starved on a busy machine. */
const niceness = 5;

/** Runs each job in a child process of its own, at low priority and within limits of time and memory. */
export class WorkProcess<Order extends object, Result> {
  private readonly children = new Set<ChildProcess>();
  private isClosed = false;

  constructor(private readonly options: WorkOptions) {}

  /**
   * Runs a job, and once more if its child dies for another reason than its limits.
   * @param timeMs time limit of this job, if it differs from the usual one.
   * @throws WorkError
   */
  async run(order: Order, timeMs = this.options.timeMs): Promise<Result> {
    try {
      return await this.runOnce(order, timeMs);
    } catch (error) {
      const mayPass = error instanceof WorkError && (error.failure === 'died' || error.failure === 'not started');
      if (!mayPass) throw error;
      return this.runOnce(order, timeMs);
    }
  }

  /** Ends the children at once; their jobs fail. No other is accepted afterwards. */
  close(): void {
    this.isClosed = true;
    for (const child of this.children) child.kill('SIGKILL');
  }

  private async runOnce(order: Order, timeMs: number): Promise<Result> {
    if (this.isClosed) throw new WorkError('closed', sentences.closed);
    const { process: child, stderr } = this.start();
    let failure: WorkFailure = 'not started';
    let isAnswered = false;
    let timer = setTimeout(() => child.kill('SIGKILL'), startMs);
    return new Promise<Result>((resolve, reject) => {
      child.on('message', (answer: WorkAnswer) => {
        clearTimeout(timer);
        if ('ready' in answer) {
          failure = 'died';
          timer = setTimeout(() => {
            failure = 'time';
            child.kill('SIGKILL');
          }, timeMs);
          // A child that is gone by now is closed next.
          child.send(order, () => undefined);
          return;
        }
        isAnswered = true;
        child.kill('SIGKILL');
        if ('error' in answer) reject(new WorkError('failed', answer.error));
        else resolve(answer.result as Result);
      });
      // At `close` all its output has been read.
      child.once('close', (code, signal) => {
        clearTimeout(timer);
        this.children.delete(child);
        if (isAnswered) return;
        if (this.isClosed) failure = 'closed';
        else if (isOutOfMemory(signal, stderr())) failure = 'memory';
        const how = `${signal ?? `exit code ${code}`} ${stderr()}`.trim();
        if (failure !== 'closed') this.options.onDeath?.(how);
        reject(new WorkError(failure, sentences[failure] ?? `The process ended: ${how}.`));
      });
    });
  }

  private start(): Child {
    const { file, heapMb, residentMb } = this.options;
    const child = startChild({
      file,
      niceness,
      execArgv: [`--max-old-space-size=${heapMb}`],
      env: {
        UV_THREADPOOL_SIZE: '2',
        // Fewer malloc arenas return memory sooner.
        MALLOC_ARENA_MAX: '2',
        [residentVariable]: String(residentMb),
      },
    });
    this.children.add(child.process);
    return child;
  }
}

const sentences: { readonly [K in WorkFailure]?: string } & { closed: string } = {
  time: 'The work took longer than it may.',
  memory: 'The work took more memory than it may.',
  closed: 'No work is accepted any more.',
};

/** V8 ends the process by itself when its heap is full. */
function isOutOfMemory(signal: NodeJS.Signals | null, stderr: string): boolean {
  return signal === memorySignal || /heap out of memory|memory allocation failed|bad_alloc/i.test(stderr);
}
