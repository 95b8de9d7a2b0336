import type { Config } from '@app/config';
import type { ApiKey } from '@app/domain';
import { CONFIG } from '@app/foundation';
import { Transactions } from '@app/queue';
import { Inject, Injectable } from '@nestjs/common';
import type { Response } from 'express';
import { RateLimitedError } from '../http/http-errors';
import { LeasedTokens } from './leased-tokens';

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

  /**
   * Counts a request, and says on its answer how many more there may be.
   * @throws RateLimitedError
   */
  async take(key: ApiKey, response: Response): Promise<void> {
    const limit = key.rateLimitPerMinute ?? this.config.rateLimitPerMinute;
    if (limit === 0) return;
    let tokens = this.tokens.get(key.id);
    if (!tokens) this.tokens.set(key.id, (tokens = new LeasedTokens(key.id, this.transactions)));
    const { granted, remaining } = await tokens.take(limit);
    const secondsFor = (wanted: number): number => Math.ceil((Math.max(0, wanted - remaining) * 60) / limit);
    response.setHeader('RateLimit-Limit', String(limit));
    response.setHeader('RateLimit-Remaining', String(Math.floor(remaining)));
    response.setHeader('RateLimit-Reset', String(secondsFor(limit)));
    if (!granted) throw new RateLimitedError(limit, Math.max(1, secondsFor(1)));
  }
}
