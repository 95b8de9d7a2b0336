import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { OnApplicationShutdown } from '@nestjs/common';
import { Injectable } from '@nestjs/common';
import { ServiceUnavailableError } from '../http/http-errors';
import type { Counted, CountingOrder } from './counting-thread';

interface Waiting {
  resolve(counted: { chunks: number[]; chunkBytes: number }): void;
  reject(error: Error): void;
}

/**
 * Counts tokens in a thread of its own: a text of 2,000 characters can take some hundredths of a second, and a model's vocabulary takes
 * tenths to load.
 */
@Injectable()
export class TokenCounter implements OnApplicationShutdown {
  /** Compiled entry of the thread; tests name the one in `dist`. */
  static threadFile = join(__dirname, 'counting-thread.js');

  private thread: Worker | undefined;
  private readonly waiting = new Map<number, Waiting>();
  private last = 0;

  async onApplicationShutdown(): Promise<void> {
    await this.thread?.terminate();
  }

  /** @throws ServiceUnavailableError when the thread ends or cannot read the model. */
  count(order: Omit<CountingOrder, 'id'>): Promise<{ chunks: number[]; chunkBytes: number }> {
    this.thread ??= this.start();
    const id = ++this.last;
    const counted = new Promise<{ chunks: number[]; chunkBytes: number }>((resolve, reject) =>
      this.waiting.set(id, { resolve, reject }),
    );
    this.thread.postMessage({ id, ...order } satisfies CountingOrder);
    return counted;
  }

  private start(): Worker {
    const thread = new Worker(TokenCounter.threadFile);
    // What waits for an answer holds a connection; the thread alone keeps no process running.
    thread.unref();
    thread.on('message', (counted: Counted) => {
      const waiting = this.waiting.get(counted.id);
      this.waiting.delete(counted.id);
      if ('error' in counted) waiting?.reject(unavailable(counted.error));
      else waiting?.resolve(counted);
    });
    thread.on('error', () => undefined);
    thread.on('exit', () => {
      this.thread = undefined;
      for (const each of this.waiting.values()) each.reject(unavailable('its thread has ended'));
      this.waiting.clear();
    });
    return thread;
  }
}

function unavailable(reason: string): Error {
  return Object.assign(new ServiceUnavailableError('The length of the prompt cannot be told. Try again shortly.'), {
    cause: new Error(reason),
  });
}
