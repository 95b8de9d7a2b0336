import { ApiKey, parseApiKeyToken, UnauthorizedError } from '@app/domain';
import { Transactions } from '@app/queue';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import type { CallerKey } from './caller.decorator';
import { storageColumns, type StorageRow } from './storage-quota';

/** `last_used_at` is written at most this often for a key. */
const lastUsedResolutionMs = 60_000;

/** Finds the caller of a request. */
@Injectable()
export class ApiKeysService {
  private readonly statement: string;

  constructor(
    @InjectRepository(ApiKey) private readonly apiKeys: Repository<ApiKey>,
    private readonly transactions: Transactions,
  ) {
    // Every request needs this row, so it is read by a prepared statement and made an entity by hand.
    const { columns } = apiKeys.metadata;
    const list = columns.map(({ databaseName, propertyName }) => `caller."${databaseName}" AS "${propertyName}"`);
    this.statement = `SELECT ${list.join(', ')}, ${storageColumns}
      FROM api_keys caller LEFT JOIN storage_use stored ON stored.owner_id = caller.id WHERE caller.prefix = $1`;
  }

  /** @throws UnauthorizedError for a token that is malformed, unknown or revoked; the response does not say which. */
  async authenticate(token: string): Promise<CallerKey> {
    const presented = parseApiKeyToken(token);
    if (!presented) throw new UnauthorizedError();
    const statement = { name: 'api-key', text: this.statement, values: [presented.prefix] };
    const [row] = await this.transactions.query<ApiKey & StorageRow>(statement);
    const key = row && keyOfRow(row);
    if (!key?.accepts(presented.secretHash)) throw new UnauthorizedError();
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
    key.lastUsedAt = new Date(now);
  }
}

function keyOfRow(row: ApiKey & StorageRow): CallerKey {
  const { max_storage_mb, picture_bytes, weight_bytes, reserved_bytes, record_bytes, upload_bytes, ...columns } = row;
  const storage = { max_storage_mb, picture_bytes, weight_bytes, reserved_bytes, record_bytes, upload_bytes };
  return Object.assign(new ApiKey(), columns, { storage });
}
