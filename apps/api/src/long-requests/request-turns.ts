import type { Writable } from 'node:stream';
import { TooManyError } from '@app/domain';
import { Injectable } from '@nestjs/common';
import { FairTurns, TurnsFullError } from '../work/fair-turns';

/** How much a request may ask of the process: one record, from a small body if any, or anything up to a megabyte or a thousand records. */
export type RequestWeight = 'light' | 'heavy';

/** Requests of a key that one api process serves at a time: as many light ones as a batch of the database takes in while others are read. */
export const servedPerKey: Readonly<Record<RequestWeight, number>> = { light: 24, heavy: 8 };
export const requestsPerKey = servedPerKey.light + servedPerKey.heavy;
/** Large bodies of a key that are being read at a time. */
export const readPerKey = 32;
/** Requests of a key that may wait until then; a heavy one waits with its body in memory. */
export const waitingPerKey: Readonly<Record<RequestWeight, number>> = { light: 500, heavy: 100 };

/** The key has as many requests waiting for their turn as may wait. */
export class TooManyRequestsError extends TooManyError {
  constructor(max: number, retryAfterSeconds = 1) {
    super(
      'TooManyRequests',
      `This API key may have ${max} requests waiting to be served; wait for some of their answers.`,
      retryAfterSeconds,
    );
  }
}

/** However many requests a key sends at once, only so many at a time take the processor and connections from others. */
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
    this.ends.set(answer, await orTooMany(this.turns[weight].take(ownerId), weight));
  }

  /**
   * Reads a large body when it is its turn.
   * @throws TooManyRequestsError, and what `read` throws
   */
  read<T>(ownerId: string, read: () => Promise<T>): Promise<T> {
    return orTooMany(this.reading.run(ownerId, read), 'heavy');
  }

  /** For a request that is done, or that stays open from now on. */
  end(answer: Writable): void {
    this.ends.get(answer)?.();
  }
}

async function orTooMany<T>(turn: Promise<T>, weight: RequestWeight): Promise<T> {
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
