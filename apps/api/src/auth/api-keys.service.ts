import { ApiKey, parseApiKeyToken } from '@app/domain';
import { Gathered, Transactions } from '@app/queue';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { UnauthorizedError } from '../http/http-errors';

/** `last_used_at` is written at most this often for a key. */
const lastUsedResolutionMs = 60_000;

/** Finds the caller of a request. */
@Injectable()
export class ApiKeysService {
  /** One statement reads the keys of all requests that come at the same time. Nothing is remembered: a key that is revoked is out at once. */
  private readonly rows: Gathered<string, ApiKey | undefined>;

  constructor(
    @InjectRepository(ApiKey) private readonly apiKeys: Repository<ApiKey>,
    transactions: Transactions,
  ) {
    // The row is needed by every request: it is read by a prepared statement, and made an entity by hand.
    const { columns } = apiKeys.metadata;
    const list = columns.map(({ databaseName, propertyName }) => `"${databaseName}" AS "${propertyName}"`);
    const text = `SELECT ${list.join(', ')} FROM api_keys WHERE prefix = ANY($1)`;
    this.rows = new Gathered(async (prefixes) => {
      const found = await transactions.query<ApiKey>({ name: 'api-keys', text, values: [[...new Set(prefixes)]] });
      const byPrefix = new Map(found.map((row) => [row.prefix, Object.assign(new ApiKey(), row)]));
      return prefixes.map((prefix) => byPrefix.get(prefix));
    });
  }

  /** @throws UnauthorizedError for a token that is malformed, unknown or revoked; the answer does not say which. */
  async authenticate(token: string): Promise<ApiKey> {
    const presented = parseApiKeyToken(token);
    const key = presented && (await this.rows.get(presented.prefix));
    if (!presented || !key?.accepts(presented.secretHash)) throw new UnauthorizedError();
    await this.touch(key);
    return key;
  }

  private async touch(key: ApiKey): Promise<void> {
    const now = Date.now();
    if (key.lastUsedAt && now - key.lastUsedAt.getTime() < lastUsedResolutionMs) return;
    await this.apiKeys
      .createQueryBuilder()
      .update()
      .set({ lastUsedAt: new Date(now) })
      .where('id = :id AND (last_used_at IS NULL OR last_used_at < :stale)', {
        id: key.id,
        stale: new Date(now - lastUsedResolutionMs),
      })
      .execute();
  }
}
