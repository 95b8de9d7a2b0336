import type { Config } from '@app/config';
import type { ApiKey } from '@app/domain';
import { TooManyError } from '@app/domain';
import { CONFIG } from '@app/foundation';
import { Transactions } from '@app/queue';
import { Inject, Injectable } from '@nestjs/common';
import { LeasedTokens } from './leased-tokens';

/** The key has made its requests of this minute. */
class RateLimitedError extends TooManyError {
  constructor(limit: number, retryAfterSeconds: number) {
    super(
      'RateLimited',
      `This API key may make ${limit} requests a minute. Try again in ${retryAfterSeconds} s.`,
      retryAfterSeconds,
    );
  }
}

/** How a key stands after a request. */
export interface Rate {
  /** Requests that it may make in a minute. */
  limit: number;
  /** How many of them are left, and how long until all are there again. */
  remaining: number;
  resetSeconds: number;
  /** Why this request is not granted, if it is not. */
  refusal?: TooManyError;
}

/**
 * How many requests a key may make, over all api processes: never more than its bucket holds. Each process holds up to a second's
 * requests of a key, so one may serve the key for that long while another refuses it.
 */
@Injectable()
export class RateLimiter {
  /** By the id of the key; there are no more than keys. */
  private readonly tokens = new Map<string, LeasedTokens>();

  constructor(
    private readonly transactions: Transactions,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  /** Counts a request. @returns how many more there may be; undefined where there may be any number. */
  async take(key: ApiKey): Promise<Rate | undefined> {
    const limit = key.rateLimitPerMinute ?? this.config.rateLimitPerMinute;
    if (limit === 0) return undefined;
    let tokens = this.tokens.get(key.id);
    if (!tokens) this.tokens.set(key.id, (tokens = new LeasedTokens(key.id, this.transactions)));
    const { granted, remaining } = await tokens.take(limit);
    const secondsFor = (wanted: number): number => Math.ceil((Math.max(0, wanted - remaining) * 60) / limit);
    return {
      limit,
      remaining: Math.floor(remaining),
      resetSeconds: secondsFor(limit),
      ...(!granted && { refusal: new RateLimitedError(limit, Math.max(1, secondsFor(1))) }),
    };
  }
}
