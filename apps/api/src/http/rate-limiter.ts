import { type Config, CONFIG } from '@app/config';
import { type ApiKey, TooManyError } from '@app/domain';
import { Transactions } from '@app/queue';
import { Inject, Injectable } from '@nestjs/common';

/**
 * Takes a token from a bucket that holds a minute's requests and refills evenly. One statement with the database's
 * clock, so that any number of api processes share a bucket. Parameters: the key, its requests per minute.
 */
const takeStatement = `
INSERT INTO rate_buckets AS bucket (owner_id, tokens, granted, taken, updated_at)
VALUES ($1, $2::double precision - 1, true, 1, clock_timestamp())
ON CONFLICT (owner_id) DO UPDATE SET (tokens, granted, taken, updated_at) = (
  SELECT CASE WHEN tokens >= 1 THEN tokens - 1 ELSE tokens END, tokens >= 1, (tokens >= 1)::integer, now
  FROM (
    SELECT now, least(
      $2, bucket.tokens + greatest(extract(epoch FROM now - bucket.updated_at), 0)::double precision * $2 / 60
    ) AS tokens
    FROM clock_timestamp() AS now
  ) filled
)
RETURNING tokens, granted`;

/** How a key stands after a request. */
export interface Rate {
  /** Requests a minute. */
  limit: number;
  /** How many of them are left, and how long until all are there again. */
  remaining: number;
  resetSeconds: number;
  /** Undefined if the request is granted. */
  refusal?: TooManyError;
}

/** Limits the requests of a key over all api processes. */
@Injectable()
export class RateLimiter {
  constructor(
    private readonly transactions: Transactions,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  /** Counts a request. @returns undefined for a key without a limit. */
  async take(key: ApiKey): Promise<Rate | undefined> {
    const limit = key.rateLimitPerMinute ?? this.config.rateLimitPerMinute;
    if (limit === 0) return undefined;
    const statement = { name: 'take-token', text: takeStatement, values: [key.id, limit] };
    const [{ tokens, granted }] = await this.transactions.query<{ tokens: number; granted: boolean }>(statement);
    const secondsFor = (wanted: number): number => Math.ceil((Math.max(0, wanted - tokens) * 60) / limit);
    const rate = { limit, remaining: Math.floor(tokens), resetSeconds: secondsFor(limit) };
    if (granted) return rate;
    const seconds = Math.max(1, secondsFor(1));
    const message = `This API key may make ${limit} requests a minute. Try again in ${seconds} s.`;
    return { ...rate, refusal: new TooManyError('RateLimited', message, seconds) };
  }
}
