import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { FairTurns } from '@app/process';
import type { Ingredient, SigningOrder } from './c2pa';
import { CredentialsError, IngredientError } from './errors';
import type { Signing } from './identity';
import type { Signed, SigningAnswer, SigningRequest } from './signing-thread';

/** Pictures in a thread: while one waits for a remote signer, others are worked on. */
const concurrency = 8;
/** Threads for pictures that were made from callers' files. */
const ofFiles = 2;
/** Several times what the largest picture takes, with a signer and a time stamp server that are slow. */
const signingMs = 60_000;

/** A picture with its credentials, and what they should have and have not. */
export interface SignedPicture extends Signed {
  /** The given pictures whose own credentials are left out, each with why. */
  leftOut?: readonly string[];
}

/** Signs pictures in threads, so that neither requests nor engines wait for it. */
export class PictureSigner {
  /** Compiled entry of a thread; tests name the one in `dist`. */
  static threadFile = join(__dirname, 'signing-thread.js');

  private readonly thread: SigningThread;
  private readonly turns = new FairTurns({ concurrency });
  /** For files of callers, one at a time in each: what they do to it is done to no other picture. */
  private readonly threadsOfFiles: readonly SigningThread[];
  /** An owner whose file hangs has one of them. */
  private readonly turnsOfFiles = new FairTurns({ concurrency: ofFiles, keyConcurrency: 1 });
  private readonly idle: SigningThread[];

  constructor(signing: Signing) {
    this.thread = new SigningThread(signing);
    this.threadsOfFiles = Array.from({ length: ofFiles }, () => new SigningThread(signing));
    this.idle = [...this.threadsOfFiles];
  }

  /**
   * Owners take turns. The credentials of given pictures that cannot be worked with are left out.
   * @throws CredentialsError if nothing can be signed now
   */
  async sign(owner: string, order: SigningOrder): Promise<SignedPicture> {
    const hasFiles = order.ingredients.some(({ file }) => file);
    const sign = (): Promise<Signed> =>
      hasFiles ? this.signWithFiles(owner, order) : this.turns.run(owner, () => this.thread.sign(order));
    try {
      return await sign();
    } catch (error) {
      if (error instanceof CredentialsError) throw error;
      // The thread has ended, and other pictures are worked on in it.
      if (!hasFiles) return sign();
      const { message } = error as Error;
      const isLeftOut = ({ definition, file }: Ingredient): boolean =>
        file !== undefined && (!(error instanceof IngredientError) || error.id === definition.instance_id);
      const ingredients = order.ingredients.map((each) => (isLeftOut(each) ? { definition: each.definition } : each));
      const { leftOut = [], ...signed } = await this.sign(owner, { ...order, ingredients });
      const now = order.ingredients.filter(isLeftOut).map(({ definition }) => `${definition.title}: ${message}`);
      return { ...signed, leftOut: [...now, ...leftOut] };
    }
  }

  private signWithFiles(owner: string, order: SigningOrder): Promise<Signed> {
    return this.turnsOfFiles.run(owner, async () => {
      const thread = this.idle.pop()!;
      try {
        return await thread.sign(order);
      } finally {
        this.idle.push(thread);
      }
    });
  }

  /** Signs something, and reads it. @throws CredentialsError that says why nothing can be signed as it is set up */
  async check(): Promise<void> {
    await this.thread.sign(undefined);
  }

  async close(): Promise<void> {
    await Promise.all([this.thread, ...this.threadsOfFiles].map((thread) => thread.close()));
  }
}

interface Waiting {
  resolve: (signed: Signed) => void;
  reject: (error: Error) => void;
}

/** Begins with the first picture, and anew with the next one after it has ended. */
class SigningThread {
  /** With what it works on. */
  private running: { worker: Worker; waiting: Map<number, Waiting> } | undefined;
  private last = 0;

  constructor(private readonly signing: Signing) {}

  /** @param order undefined where it is only asked whether anything can be signed */
  async sign(order: SigningOrder | undefined): Promise<Signed> {
    const { worker, waiting } = (this.running ??= this.start());
    const id = ++this.last;
    const timer = setTimeout(() => void worker.terminate(), signingMs);
    try {
      return await new Promise((resolve, reject) => {
        waiting.set(id, { resolve, reject });
        worker.postMessage({ id, signing: this.signing, order } satisfies SigningRequest);
      });
    } finally {
      clearTimeout(timer);
      waiting.delete(id);
    }
  }

  async close(): Promise<void> {
    await this.running?.worker.terminate();
  }

  private start(): NonNullable<SigningThread['running']> {
    const started = { worker: new Worker(PictureSigner.threadFile), waiting: new Map<number, Waiting>() };
    const { worker, waiting } = started;
    const leave = (): void => {
      if (this.running === started) this.running = undefined;
    };
    worker.unref();
    worker.on('message', (answer: SigningAnswer) => {
      const { resolve, reject } = waiting.get(answer.id) ?? {};
      if (!('error' in answer)) return resolve?.(answer);
      if (answer.isLast) leave();
      reject?.(errorOf(answer));
    });
    let reason = 'The thread that signs has ended.';
    worker.on('error', ({ message }: Error) => (reason = message));
    worker.on('exit', () => {
      leave();
      for (const { reject } of waiting.values()) reject(new Error(reason));
    });
    return started;
  }
}

function errorOf({ error, isOfSigner, ingredient }: Extract<SigningAnswer, { error: string }>): Error {
  if (isOfSigner) return new CredentialsError(error);
  return ingredient === undefined ? new Error(error) : new IngredientError(ingredient, new Error(error));
}
