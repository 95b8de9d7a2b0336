// Attack: one key sends thousands of requests at once, or keeps thousands open, and the others wait for it.
import type { Writable } from 'node:stream';
import { TooManyError } from '@app/domain';
import { FairTurns, TurnsFullError } from '@app/process';
import { Injectable } from '@nestjs/common';

/**
 * How much work a request may cause: one record, at most from a small body, or anything up to a megabyte or a thousand
 * records.
 */
export type RequestWeight = 'light' | 'heavy';

/** Requests of a key that one api process serves at a time: a heavy one takes up to a megabyte and much time. */
export const servedPerKey: Readonly<Record<RequestWeight, number>> = { light: 24, heavy: 8 };
export const requestsPerKey = servedPerKey.light + servedPerKey.heavy;
/** Large bodies of a key that are read at a time. */
const readPerKey = 32;
/** Requests of a key that may wait; a heavy one waits with its body in memory. */
export const waitingPerKey: Readonly<Record<RequestWeight, number>> = { light: 500, heavy: 100 };

/** Requests that may stay open for long. */
type LongRequestKind = 'event stream' | 'complete list' | 'waiting answer' | 'call of an agent' | 'upload';

/** Most open requests per kind and key in one api process; uploads have a limit of their own. */
export const longRequestsPerKey: Readonly<Record<LongRequestKind, number>> = {
  'event stream': 100,
  'complete list': 1,
  'waiting answer': 200,
  'call of an agent': 40,
  upload: Infinity,
};

interface LongRequest {
  kind: LongRequestKind;
  end: () => void;
}

/**
 * The open requests of each key in this process: a few are served at a time, others wait or are refused. Long ones are
 * counted by kind, and end when the key is revoked.
 */
@Injectable()
export class OpenRequests {
  private readonly served = {
    light: new FairTurns({ keyConcurrency: servedPerKey.light, perKey: waitingPerKey.light }),
    heavy: new FairTurns({ keyConcurrency: servedPerKey.heavy, perKey: waitingPerKey.heavy }),
  };
  private readonly reading = new FairTurns({ keyConcurrency: readPerKey, perKey: waitingPerKey.heavy });
  private readonly ends = new WeakMap<Writable, () => void>();
  private readonly long = new Map<string, Set<LongRequest>>();

  /**
   * Resolves when the request may be served.
   * @param answer identifies the request for `finish`.
   * @throws TooManyError
   */
  async begin(ownerId: string, answer: Writable, weight: RequestWeight): Promise<void> {
    this.ends.set(answer, await orRefuse(this.served[weight].take(ownerId), weight));
  }

  /**
   * Reads a large body when few enough of the key are being read.
   * @throws TooManyError, and what `read` throws
   */
  read<T>(ownerId: string, read: () => Promise<T>): Promise<T> {
    return orRefuse(this.reading.run(ownerId, read), 'heavy');
  }

  /** Call it when a request is done, or only stays open from now on: another of the key is then served. */
  finish(answer: Writable): void {
    this.ends.get(answer)?.();
  }

  /**
   * Counts a request as a long one until its answer is closed. It keeps its turn until `finish`.
   * @param end ends it early.
   * @throws TooManyError
   */
  add(ownerId: string, answer: Writable, kind: LongRequestKind, end: () => void): void {
    // A request whose caller is already gone would never be removed.
    if (answer.closed) return;
    const own = this.long.get(ownerId) ?? new Set();
    const count = [...own].filter((other) => other.kind === kind).length;
    if (count >= longRequestsPerKey[kind]) throw tooMany(kind);
    const request = { kind, end };
    this.long.set(ownerId, own.add(request));
    answer.once('close', () => {
      own.delete(request);
      if (own.size === 0 && this.long.get(ownerId) === own) this.long.delete(ownerId);
    });
  }

  /** `add`, for a request that from now on only stays open. */
  addAndFinish(ownerId: string, answer: Writable, kind: LongRequestKind, end: () => void): void {
    this.add(ownerId, answer, kind, end);
    this.finish(answer);
  }

  owners(): string[] {
    return [...this.long.keys()];
  }

  /** @returns how many there were. */
  endAll(ownerId: string): number {
    const own = [...(this.long.get(ownerId) ?? [])];
    for (const { end } of own) end();
    return own.length;
  }
}

async function orRefuse<T>(work: Promise<T>, weight: RequestWeight): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof TurnsFullError)) throw error;
    const message = `This API key may have ${waitingPerKey[weight]} requests waiting to be served; wait for some of their answers.`;
    throw new TooManyError('TooManyRequests', message, 1);
  }
}

function tooMany(kind: LongRequestKind): TooManyError {
  const most = `This API key may have ${longRequestsPerKey[kind]}`;
  if (kind === 'event stream') return new TooManyError('TooManyEventStreams', `${most} event streams open.`, 10);
  if (kind === 'waiting answer')
    return new TooManyError('TooManyWaiting', `${most} requests waiting for pictures.`, 10);
  if (kind === 'call of an agent') return new TooManyError('TooManyWaiting', `${most} calls of agents open.`, 10);
  const message = 'This API key has a complete list running; wait for its end, or ask for pages with ?limit=.';
  return new TooManyError('ListRunning', message, 2);
}
