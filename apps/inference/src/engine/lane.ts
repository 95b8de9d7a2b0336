import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { GraphSession, TensorCopy } from '@app/diffusion';
import { copyOfTensor, OutOfMemoryError, tensorFromCopy } from '@app/diffusion';
import type { LaneAnswer, LaneCommand, OpenedGraph } from './lane-protocol';

type Wanted = LaneCommand extends infer C ? (C extends LaneCommand ? Omit<C, 'id'> : never) : never;

interface Waiting {
  resolve: (answer: LaneAnswer) => void;
  reject: (error: Error) => void;
}

/** A thread with sessions of its own, as its engine sees it. */
export class Lane {
  private readonly worker = new Worker(join(__dirname, 'lane-thread.js'));
  private readonly waiting = new Map<number, Waiting>();
  private readonly exited: Promise<void>;
  private nextId = 1;
  private isClosing = false;

  /** @param onLost told when the thread ends by itself; what it was asked for is never answered then */
  constructor(onLost: (error: Error) => void) {
    let cause: unknown;
    this.worker.on('error', (error) => (cause = error));
    this.worker.on('message', (answer: LaneAnswer) => this.take(answer));
    this.exited = new Promise((resolve) =>
      this.worker.once('exit', (code) => {
        resolve();
        if (!this.isClosing) onLost(new Error(`A lane of the engine ended with code ${code}.`, { cause }));
      }),
    );
  }

  /** Loads a graph into the lane's thread. @throws Error if it cannot be loaded */
  async open(options: Omit<Extract<LaneCommand, { type: 'open' }>, 'id' | 'type'>): Promise<GraphSession> {
    const { opened } = (await this.ask({ type: 'open', ...options })) as { opened: OpenedGraph };
    const { session, ...facts } = opened;
    return {
      ...facts,
      run: async (feeds, output) => {
        const copies = Object.fromEntries(
          Object.entries(feeds).map(([name, tensor]) => [name, copyOfTensor(tensor)] as const),
        );
        const moved = Object.values(copies).map(({ data }) => data.buffer as ArrayBuffer);
        const { tensor } = (await this.ask({ type: 'run', session, feeds: copies, output }, moved)) as {
          tensor: TensorCopy;
        };
        return tensorFromCopy(tensor);
      },
      release: async () => void (await this.ask({ type: 'release', session })),
    };
  }

  /** Ends the thread when it has done what it was asked for. */
  async close(): Promise<void> {
    this.isClosing = true;
    this.worker.postMessage('close');
    await this.exited;
  }

  private ask(wanted: Wanted, moved: ArrayBuffer[] = []): Promise<LaneAnswer> {
    const id = this.nextId++;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.worker.postMessage({ id, ...wanted } satisfies LaneCommand, moved);
    });
  }

  private take(answer: LaneAnswer): void {
    const { resolve, reject } = this.waiting.get(answer.id)!;
    this.waiting.delete(answer.id);
    if (answer.type !== 'failed') return resolve(answer);
    const { name, message } = answer;
    reject(
      name === OutOfMemoryError.name ? new OutOfMemoryError(message) : Object.assign(new Error(message), { name }),
    );
  }
}
