import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { FairTurns } from '@app/process';
import { CredentialsError, type Signing } from './identity';
import type { SigningOrder } from './c2pa';
import type { Signed, SigningAnswer, SigningRequest } from './signing-thread';

/** Pictures in the thread: while one waits for a remote signer, others are worked on. */
const turns = { concurrency: 8 };
/** Several times what the largest picture takes, with a signer and a time stamp server that are slow. */
const signingMs = 60_000;

/** A black pixel. */
const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==';

interface Waiting {
  resolve: (signed: Signed) => void;
  reject: (error: Error) => void;
}

/** With what it works on. */
interface Thread {
  worker: Worker;
  waiting: Map<number, Waiting>;
}

/** Signs pictures in a thread of its own, so that neither requests nor engines wait for it. */
export class PictureSigner {
  /** Compiled entry of the thread; tests name the one in `dist`. */
  static threadFile = join(__dirname, 'signing-thread.js');

  private readonly turns = new FairTurns(turns);
  private thread: Thread | undefined;
  private last = 0;

  constructor(private readonly signing: Signing) {}

  /**
   * Owners take turns. Where a given picture's own credentials are what cannot be worked with, they are left out.
   * @throws CredentialsError if nothing can be signed now
   */
  sign(owner: string, order: SigningOrder): Promise<Signed> {
    return this.turns.run(owner, () =>
      this.signNow({ order, isChecked: false }).catch((error: Error) => {
        if (error instanceof CredentialsError) throw error;
        const ingredients = order.ingredients.map(({ definition }) => ({ definition }));
        return this.signNow({ order: { ...order, ingredients }, isChecked: false });
      }),
    );
  }

  /** Signs something, and reads it. @throws CredentialsError that says why nothing can be signed as it is set up */
  async check(): Promise<void> {
    const created = { action: 'c2pa.created', digitalSourceType: `${sourceTypes}digitalCreation` };
    const assertions = [{ label: 'c2pa.actions.v2', data: { actions: [created] } }];
    const manifest = { claim_generator_info: [{ name: 'check', version: '1' }], title: 'check', assertions };
    const order = { bytes: Buffer.from(pixel, 'base64'), type: 'image/png', manifest, ingredients: [] };
    await this.signNow({ order, isChecked: true });
  }

  async close(): Promise<void> {
    await this.thread?.worker.terminate();
  }

  private async signNow(asked: Pick<SigningRequest, 'order' | 'isChecked'>): Promise<Signed> {
    const { worker, waiting } = (this.thread ??= this.start());
    const id = ++this.last;
    const timer = setTimeout(() => void worker.terminate(), signingMs);
    try {
      return await new Promise((resolve, reject) => {
        waiting.set(id, { resolve, reject });
        worker.postMessage({ id, signing: this.signing, ...asked } satisfies SigningRequest);
      });
    } finally {
      clearTimeout(timer);
      waiting.delete(id);
    }
  }

  private start(): Thread {
    const thread: Thread = { worker: new Worker(PictureSigner.threadFile), waiting: new Map() };
    const { worker, waiting } = thread;
    worker.unref();
    worker.on('message', (answer: SigningAnswer) => {
      const { resolve, reject } = waiting.get(answer.id) ?? {};
      if (!('error' in answer)) resolve?.(answer);
      else reject?.(answer.isOfSigner ? new CredentialsError(answer.error) : new Error(answer.error));
    });
    let reason = 'The thread that signs has ended.';
    worker.on('error', ({ message }: Error) => (reason = message));
    worker.on('exit', () => {
      if (this.thread === thread) this.thread = undefined;
      for (const { reject } of waiting.values()) reject(new Error(reason));
    });
    return thread;
  }
}

/** IPTC's vocabulary "Digital Source Type". */
export const sourceTypes = 'http://cv.iptc.org/newscodes/digitalsourcetype/';
