import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { copyOfTensor, type GraphSession, type TensorCopy, tensorFromCopy } from '@app/diffusion';
import type { AskedCall, DeviceCalls } from '../time/device-calls';
import { errorFromCopy, type OpenedGraph, type SessionAnswer, type SessionCommand } from './session-protocol';
import { threadsNow } from '../time/work-clock';

type ClaimFilter = SessionCommand extends infer C ? (C extends SessionCommand ? Omit<C, 'id'> : never) : never;
/** What to open. */
export type Openable = Extract<ClaimFilter, { type: 'open' | 'openFile' }>;

interface Waiting {
  resolve: (answer: SessionAnswer) => void;
  reject: (error: Error) => void;
  call: AskedCall | undefined;
}

/**
 * The sessions of another thread, as its engine sees them: a lane has such a thread, and so has an engine with CUDA.
 */
export class RemoteSessions {
  private readonly worker = new Worker(join(__dirname, 'session-thread.js'));
  private readonly waiting = new Map<number, Waiting>();
  private readonly exited: Promise<void>;
  private nextId = 1;
  private isClosing = false;
  /** What it has answered so far. */
  answers = 0;

  /**
   * @param name what the thread is, at the start of a sentence
   * @param onLost told when the thread ends by itself; what it was asked for is never answered then
   * @param calls told of its calls
   */
  constructor(
    name: string,
    onLost: (error: Error) => void,
    private readonly calls?: Pick<DeviceCalls, 'ask'>,
  ) {
    let cause: unknown;
    this.worker.on('error', (error) => (cause = error));
    this.worker.on('message', (answer: SessionAnswer) => this.take(answer));
    this.exited = new Promise((resolve) =>
      this.worker.once('exit', (code) => {
        resolve();
        if (!this.isClosing) onLost(new Error(`${name} of the engine ended with code ${code}.`, { cause }));
      }),
    );
  }

  /** Loads a graph into that thread. @throws Error if it cannot be loaded */
  async open(wanted: Openable): Promise<GraphSession> {
    const { opened } = (await this.ask(wanted)) as { opened: OpenedGraph };
    const { session, ...facts } = opened;
    const spent = { runs: 0, runMs: 0 };
    return {
      ...facts,
      spent,
      run: async (feeds, output) => {
        const copies = Object.fromEntries(
          Object.entries(feeds).map(([name, tensor]) => [name, copyOfTensor(tensor)] as const),
        );
        const moved = Object.values(copies).map(({ data }) => data.buffer as ArrayBuffer);
        const startedAt = performance.now();
        const call = this.calls?.ask();
        const cancel = call?.cancel && { cancel: call.cancel };
        const { tensor } = (await this.ask(
          { type: 'run', session, feeds: copies, output, ...cancel },
          moved,
          call,
        )) as { tensor: TensorCopy };
        spent.runs++;
        spent.runMs += performance.now() - startedAt;
        return tensorFromCopy(tensor);
      },
      release: async () => void (await this.ask({ type: 'release', session })),
    };
  }

  /** Whether it has not answered all that it was asked for. */
  get isBusy(): boolean {
    return this.waiting.size > 0;
  }

  /** Ends the thread when it has done what it was asked for. */
  async close(): Promise<void> {
    this.isClosing = true;
    this.worker.postMessage('close');
    await this.exited;
  }

  private ask(wanted: ClaimFilter, moved: ArrayBuffer[] = [], call?: AskedCall): Promise<SessionAnswer> {
    const id = this.nextId++;
    return new Promise((resolve, reject) => {
      try {
        this.worker.postMessage({ id, ...wanted } satisfies SessionCommand, moved);
        // An answer cannot come before this function has ended.
        this.waiting.set(id, { resolve, reject, call });
      } catch (error) {
        call?.ended(threadsNow());
        reject(error instanceof Error ? error : new Error(String(error)));
      }
    });
  }

  private take(answer: SessionAnswer): void {
    const { resolve, reject, call } = this.waiting.get(answer.id)!;
    if (answer.type === 'began') return call?.began(answer.at);
    this.waiting.delete(answer.id);
    this.answers++;
    if ('endedAt' in answer) call?.ended(answer.endedAt);
    if (answer.type === 'failed') reject(errorFromCopy(answer.error));
    else resolve(answer);
  }
}
