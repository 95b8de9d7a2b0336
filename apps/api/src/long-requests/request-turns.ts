import { Injectable } from '@nestjs/common';
import type { Response } from 'express';
import { TooManyRequestsError } from '../http/http-errors';
import { FairTurns, TurnsFullError } from '../work/fair-turns';

/** Requests of a key that one api process serves at a time, and that may wait until then. */
export const requestsPerKey = 8;
const waitingPerKey = 500;

/** However many requests a key sends at once, only so many at a time take the processor and connections from others. */
@Injectable()
export class RequestTurns {
  private readonly turns = new FairTurns({
    concurrency: Infinity,
    keyConcurrency: requestsPerKey,
    perKey: waitingPerKey,
    total: Infinity,
  });
  private readonly ends = new WeakMap<Response, () => void>();

  /**
   * Resolves when it is the request's turn.
   * @throws TooManyRequestsError
   */
  async take(ownerId: string, response: Response): Promise<void> {
    try {
      this.ends.set(response, await this.turns.take(ownerId));
    } catch (error) {
      throw error instanceof TurnsFullError ? new TooManyRequestsError(waitingPerKey) : error;
    }
  }

  /** For a request that is done, or that stays open from now on. */
  end(response: Response): void {
    this.ends.get(response)?.();
  }
}
