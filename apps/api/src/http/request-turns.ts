import type { Writable } from 'node:stream';
import { TooManyError } from '@app/domain';
import { FairTurns, TurnsFullError } from '@app/process';
import { Injectable } from '@nestjs/common';

/**
 * How much work a request may cause: one record, from a small body if any, or anything up to a megabyte
 * or a thousand records.
 */
export type RequestWeight = 'light' | 'heavy';

/**
 * Requests of a key that one api process serves at a time: as many light ones as one database batch takes
 * while others are read.
 */
export const servedPerKey: Readonly<Record<RequestWeight, number>> = { light: 24, heavy: 8 };
export const requestsPerKey = servedPerKey.light + servedPerKey.heavy;
/** Large bodies of a key that are read at a time. */
export const readPerKey = 32;
/** Requests of a key that may wait; a heavy one waits with its body in memory. */
export const waitingPerKey: Readonly<Record<RequestWeight, number>> = { light: 500, heavy: 100 };

/** Too many requests of the key wait for their turn. */
export class TooManyRequestsError extends TooManyError {
  constructor(max: number, retryAfterSeconds = 1) {
    super(
      'TooManyRequests',
      `This API key may have ${max} requests waiting to be served; wait for some of their answers.`,
      retryAfterSeconds,
    );
  }
}

/** Limits how many requests of a key use the processor and connections at a time, however many it sends. */
@Injectable()
export class RequestTurns {
  private readonly turns = {
    light: turnsOf('light', servedPerKey.light),
    heavy: turnsOf('heavy', servedPerKey.heavy),
  };
  private readonly reading = turnsOf('heavy', readPerKey);
  private readonly ends = new WeakMap<Writable, () => void>();

  /**
   * Resolves when it is the request's turn.
   * @param answer to the request, by which `end` knows it.
   * @throws TooManyRequestsError
   */
  async take(ownerId: string, answer: Writable, weight: RequestWeight): Promise<void> {
    this.ends.set(answer, await orReject(this.turns[weight].take(ownerId), weight));
  }

  /**
   * Reads a large body when it is its turn.
   * @throws TooManyRequestsError, and what `read` throws
   */
  read<T>(ownerId: string, read: () => Promise<T>): Promise<T> {
    return orReject(this.reading.run(ownerId, read), 'heavy');
  }

  /** Call it for a request that is done, or that stays open from now on. */
  end(answer: Writable): void {
    this.ends.get(answer)?.();
  }
}

async function orReject<T>(turn: Promise<T>, weight: RequestWeight): Promise<T> {
  try {
    return await turn;
  } catch (error) {
    throw error instanceof TurnsFullError ? new TooManyRequestsError(waitingPerKey[weight]) : error;
  }
}

function turnsOf(weight: RequestWeight, keyConcurrency: number): FairTurns {
  return new FairTurns({
    concurrency: Infinity,
    keyConcurrency,
    perKey: waitingPerKey[weight],
    total: Infinity,
  });
}
