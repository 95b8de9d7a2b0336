import type { Config } from '@app/config';
import type { ApiKey } from '@app/domain';
import { Inject, Injectable } from '@nestjs/common';
import type { Response } from 'express';
import { DataSource } from 'typeorm';
import { CONFIG } from '../config.token';
import { RateLimitedError } from '../http/http-errors';

/**
 * Takes a token, if there is one, from a bucket that holds a minute's requests and fills evenly. One statement, and the
 * database's clock, so that any number of api processes share a bucket. Parameters: the key, its requests per minute.
 */
const takeStatement = `
INSERT INTO rate_buckets AS bucket (owner_id, tokens, granted, updated_at)
VALUES ($1, $2::double precision - 1, true, clock_timestamp())
ON CONFLICT (owner_id) DO UPDATE SET (tokens, granted, updated_at) = (
  SELECT tokens - CASE WHEN tokens >= 1 THEN 1 ELSE 0 END, tokens >= 1, now
  FROM (
    SELECT now, least(
      $2, bucket.tokens + greatest(extract(epoch FROM now - bucket.updated_at), 0)::double precision * $2 / 60
    ) AS tokens
    FROM clock_timestamp() AS now
  ) filled
)
RETURNING tokens, granted`;

/** How many requests a key may make, over all api processes. */
@Injectable()
export class RateLimiter {
  constructor(
    private readonly dataSource: DataSource,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  /**
   * Counts a request, and says on its answer how many more there may be.
   * @throws RateLimitedError
   */
  async take(key: ApiKey, response: Response): Promise<void> {
    const limit = key.rateLimitPerMinute ?? this.config.rateLimitPerMinute;
    if (limit === 0) return;
    const [{ tokens, granted }] = await this.dataSource.query<{ tokens: number; granted: boolean }[]>(takeStatement, [
      key.id,
      limit,
    ]);
    const secondsFor = (wanted: number): number => Math.ceil((Math.max(0, wanted - tokens) * 60) / limit);
    response.set({
      'RateLimit-Limit': String(limit),
      'RateLimit-Remaining': String(Math.floor(tokens)),
      'RateLimit-Reset': String(secondsFor(limit)),
    });
    if (!granted) throw new RateLimitedError(limit, Math.max(1, secondsFor(1)));
  }
}
