import { EntityColumns } from '@app/database';
import { ApiKey, parseApiKeyToken, UnauthorizedError } from '@app/domain';
import { Transactions } from '@app/queue';
import { storageColumns, type StorageRow } from '@app/tasks';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import type { CallerKey } from './caller.decorator';

/** Shortest interval between two writes of a key's `last_used_at`. */
const lastUsedResolutionMs = 60_000;

/** Finds the caller of a request. */
@Injectable()
export class ApiKeysService {
  private readonly columns: EntityColumns<ApiKey>;
  private readonly statement: { name: string; text: string };

  constructor(
    @InjectRepository(ApiKey) private readonly apiKeys: Repository<ApiKey>,
    private readonly transactions: Transactions,
  ) {
    this.columns = new EntityColumns(apiKeys.manager.connection, ApiKey, 'caller');
    const text = `SELECT ${this.columns.list}, ${storageColumns}
      FROM api_keys caller LEFT JOIN storage_use stored ON stored.owner_id = caller.id WHERE caller.prefix = $1`;
    this.statement = { name: 'api-key', text };
  }

  /** @throws UnauthorizedError for a token that is malformed, unknown or revoked; the response does not say which. */
  async authenticate(token: string): Promise<CallerKey> {
    const presented = parseApiKeyToken(token);
    if (!presented) throw new UnauthorizedError();
    const statement = { ...this.statement, values: [presented.prefix] };
    const [storage] = await this.transactions.query<(StorageRow & Record<string, unknown>) | undefined>(statement);
    const key = storage && Object.assign(new ApiKey(), this.columns.read(storage), { storage });
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
