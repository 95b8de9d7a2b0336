import { ApiKey, parseApiKeyToken } from '@app/domain';
import { Gathered, Transactions } from '@app/queue';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { UnauthorizedError } from '../http/http-errors';
import type { StorageRow } from '../storage-use/storage-quota';
import { storageColumns } from '../storage-use/storage-quota';
import type { CallerKey } from './caller-key';

/** `last_used_at` is written at most this often for a key. */
const lastUsedResolutionMs = 60_000;

/** Finds the caller of a request. */
@Injectable()
export class ApiKeysService {
  /** One statement reads the keys of all requests that come at the same time. Nothing is remembered: a key that is revoked is out at once. */
  private readonly rows: Gathered<string, CallerKey | undefined>;

  constructor(
    @InjectRepository(ApiKey) private readonly apiKeys: Repository<ApiKey>,
    transactions: Transactions,
  ) {
    // The row is needed by every request: it is read by a prepared statement, and made an entity by hand.
    const { columns } = apiKeys.metadata;
    const list = columns.map(({ databaseName, propertyName }) => `caller."${databaseName}" AS "${propertyName}"`);
    const text = `SELECT ${list.join(', ')}, ${storageColumns}
      FROM api_keys caller LEFT JOIN storage_use stored ON stored.owner_id = caller.id WHERE caller.prefix`;
    this.rows = new Gathered(async (prefixes) => {
      const asked = [...new Set(prefixes)];
      // An array's length decides its plan, so that PostgreSQL makes a new one each time; for one key it keeps the first.
      const statement =
        asked.length === 1
          ? { name: 'api-key', text: `${text} = $1`, values: asked }
          : { name: 'api-keys', text: `${text} = ANY($1)`, values: [asked] };
      const found = await transactions.query<ApiKey & StorageRow>(statement);
      const byPrefix = new Map(found.map((row) => [row.prefix, callerOf(row)]));
      return prefixes.map((prefix) => byPrefix.get(prefix));
    });
  }

  /** @throws UnauthorizedError for a token that is malformed, unknown or revoked; the answer does not say which. */
  async authenticate(token: string): Promise<CallerKey> {
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

function callerOf({
  max_storage_mb,
  picture_bytes,
  weight_bytes,
  upload_bytes,
  ...columns
}: ApiKey & StorageRow): CallerKey {
  const storage = { max_storage_mb, picture_bytes, weight_bytes, upload_bytes };
  return Object.assign(new ApiKey(), columns, { storage });
}
