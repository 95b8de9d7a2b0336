import type { Config } from '@app/config';
import { QueryBatcher } from '@app/database';
import type { ApiKey } from '@app/domain';
import { TooManyError } from '@app/domain';
import { CONFIG } from '@app/config';
import { Transactions } from '@app/queue';
import { Inject, Injectable } from '@nestjs/common';

/**
 * Takes up to the wanted number of tokens from a bucket that holds a minute's requests and refills evenly. One
 * statement with the database's clock, so that any number of api processes share a bucket. Parameters: the key, its
 * requests per minute, the wanted tokens, and how many of the tokens taken before are returned.
 */
const takeStatement = `
INSERT INTO rate_buckets AS bucket (owner_id, tokens, granted, taken, updated_at)
VALUES ($1, $2::double precision - least($2, $3::integer), true, least($2, $3::integer), clock_timestamp())
ON CONFLICT (owner_id) DO UPDATE SET (tokens, granted, taken, updated_at) = (
  SELECT tokens - least(floor(tokens), $3), tokens >= 1, least(floor(tokens), $3), now
  FROM (
    SELECT now, least(
      $2, bucket.tokens + $4 + greatest(extract(epoch FROM now - bucket.updated_at), 0)::double precision * $2 / 60
    ) AS tokens
    FROM clock_timestamp() AS now
  ) filled
)
RETURNING tokens, taken`;

/** Tokens for one second, up to this number, are taken at a time; the rest is returned after a second. */
const lease = { part: 1 / 60, most: 100, ms: 1_000 };

/** Whether a request may be made, and how many more, as far as this process knows. */
interface Token {
  granted: boolean;
  remaining: number;
}

/** Tokens of one key that this process has taken from the shared bucket, and hands out without asking again. */
class LeasedTokens {
  private left = 0;
  /** The content of the bucket after the last taking. */
  private tokens = 0;
  private takenAt = 0;
  private readonly requests: QueryBatcher<number, Token>;

  constructor(ownerId: string, transactions: Transactions) {
    this.requests = new QueryBatcher(async (limits) => {
      const limit = limits[limits.length - 1];
      const wanted = Math.max(limits.length, Math.min(Math.floor(limit * lease.part), lease.most));
      const values = [ownerId, limit, wanted, this.left];
      this.left = 0;
      const statement = { name: 'take-tokens', text: takeStatement, values };
      const [bucket] = await transactions.query<{ tokens: number; taken: number }>(statement);
      this.takenAt = performance.now();
      this.tokens = bucket.tokens;
      this.left = bucket.taken;
      return limits.map(() => this.handOut() ?? { granted: false, remaining: this.tokens });
    });
  }

  /** @param limit requests per minute of the key. */
  take(limit: number): Token | Promise<Token> {
    const isFresh = performance.now() - this.takenAt < lease.ms;
    return (isFresh && this.handOut()) || this.requests.get(limit);
  }

  private handOut(): Token | undefined {
    if (this.left === 0) return undefined;
    this.left--;
    return { granted: true, remaining: this.tokens + this.left };
  }
}

/** The key has used up its requests of this minute. */
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
 * Limits the requests of a key over all api processes: never more than its bucket holds. Each process holds up to one
 * second's requests of a key, so one process may serve the key for that long while another rejects it.
 */
@Injectable()
export class RateLimiter {
  /** By key id, so no more than there are keys. */
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
