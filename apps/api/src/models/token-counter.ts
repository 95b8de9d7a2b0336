import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { ServiceUnavailableError, TooManyError } from '@app/domain';
import { FairTurns, TurnsFullError } from '@app/process';
import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import type { Counted, CountingOrder, TextLengths } from './counting-thread';

/** One job per request. */
const waiting = { concurrency: 1, perKey: 100, total: 1000 };
const retryAfterSeconds = 5;

interface Waiting {
  id: number;
  resolve(counted: TextLengths): void;
  reject(error: Error): void;
}

/**
 * Counts tokens in a thread: a text of 32,000 characters can take a second, and loading a model's vocabulary tenths.
 * One job at a time, and keys take turns.
 */
@Injectable()
export class TokenCounter implements OnApplicationShutdown {
  /** Compiled entry of the thread; tests name the one in `dist`. */
  static threadFile = join(__dirname, 'counting-thread.js');
  /**
   * Limit after which the thread is terminated: ten times what the longest text and a vocabulary on a slow disk take.
   * Shorter in tests.
   */
  static timeMs = 20_000;

  private readonly turns = new FairTurns(waiting);
  private thread: Worker | undefined;
  private current: Waiting | undefined;
  private last = 0;

  async onApplicationShutdown(): Promise<void> {
    await this.thread?.terminate();
  }

  /**
   * @throws ServiceUnavailableError when the thread ends, takes too long or cannot read the model, or too much waits in
   * all; TooManyError when too much of the key's own waits.
   */
  async count(key: string, order: Omit<CountingOrder, 'id'>): Promise<TextLengths> {
    try {
      return await this.turns.run(key, () => this.countNow(order));
    } catch (error) {
      if (!(error instanceof TurnsFullError)) throw error;
      if (!error.isOfKey) throw unavailable(error.message);
      const message = 'Too many requests of this API key wait for the length of their prompts. Try again shortly.';
      throw new TooManyError('QueueFull', message, retryAfterSeconds);
    }
  }

  private async countNow(order: Omit<CountingOrder, 'id'>): Promise<TextLengths> {
    const thread = (this.thread ??= this.start());
    const id = ++this.last;
    const timer = setTimeout(() => void thread.terminate(), TokenCounter.timeMs);
    try {
      return await new Promise((resolve, reject) => {
        this.current = { id, resolve, reject };
        thread.postMessage({ id, ...order } satisfies CountingOrder);
      });
    } finally {
      clearTimeout(timer);
    }
  }

  private start(): Worker {
    const thread = new Worker(TokenCounter.threadFile);
    // A waiting caller holds a connection; the thread alone must not keep the process alive.
    thread.unref();
    thread.on('message', (counted: Counted) => {
      if (counted.id !== this.current?.id) return;
      if ('error' in counted) this.current.reject(unavailable(counted.error));
      else this.current.resolve(counted);
    });
    thread.on('error', () => undefined);
    thread.on('exit', () => {
      this.thread = undefined;
      this.current?.reject(unavailable('its thread has ended'));
    });
    return thread;
  }
}

function unavailable(reason: string): Error {
  return Object.assign(new ServiceUnavailableError('The length of the prompt cannot be told. Try again shortly.'), {
    cause: new Error(reason),
  });
}
