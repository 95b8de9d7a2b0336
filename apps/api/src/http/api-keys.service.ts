import { keyChannel } from '@app/domain';
import { QueryBatcher } from '@app/database';
import { ApiKey, parseApiKeyToken, UnauthorizedError } from '@app/domain';
import { Transactions } from '@app/queue';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { Notifications } from './notifications';
import type { StorageRow } from './storage-quota';
import { storageColumns } from './storage-quota';
import type { CallerKey } from './caller-key';

/** `last_used_at` is written at most this often for a key. */
const lastUsedResolutionMs = 60_000;

/**
 * How long a key may be cached, where that is enough. Revoking or rotating one sends a notification, and
 * it is dropped at once.
 */
const knownMs = 1_000;
/** Far more keys than make requests in one second. */
const maxKnown = 10_000;

/** Finds the caller of a request. */
@Injectable()
export class ApiKeysService {
  /** One statement reads the keys of all requests that arrive at the same time. */
  private readonly rows: QueryBatcher<string, CallerKey | undefined>;
  /** By prefix; only existing keys. */
  private readonly known = new Map<string, { key: CallerKey; readAt: number }>();
  /** A key whose reading had begun before all were forgotten may be out of date, and is not kept. */
  private epoch = 0;

  constructor(
    @InjectRepository(ApiKey) private readonly apiKeys: Repository<ApiKey>,
    transactions: Transactions,
    notifications: Notifications,
  ) {
    notifications.on(keyChannel, () => this.forgetAll());
    // Every request needs this row, so it is read by a prepared statement and made an entity by hand.
    const { columns } = apiKeys.metadata;
    const list = columns.map(({ databaseName, propertyName }) => `caller."${databaseName}" AS "${propertyName}"`);
    const text = `SELECT ${list.join(', ')}, ${storageColumns}
      FROM api_keys caller LEFT JOIN storage_use stored ON stored.owner_id = caller.id WHERE caller.prefix`;
    this.rows = new QueryBatcher(async (prefixes) => {
      const asked = [...new Set(prefixes)];
      // With an array PostgreSQL would plan again each time, because its length matters; the plan
      // for one key is reused.
      const statement =
        asked.length === 1
          ? { name: 'api-key', text: `${text} = $1`, values: asked }
          : { name: 'api-keys', text: `${text} = ANY($1)`, values: [asked] };
      const found = await transactions.query<ApiKey & StorageRow>(statement);
      const byPrefix = new Map(found.map((row) => [row.prefix, keyOfRow(row)]));
      return prefixes.map((prefix) => byPrefix.get(prefix));
    });
  }

  /**
   * @param isFresh whether to read the key now; otherwise it may be up to a second old.
   * @throws UnauthorizedError for a token that is malformed, unknown or revoked; the response does not say which.
   */
  async authenticate(token: string, isFresh: boolean): Promise<CallerKey> {
    const presented = parseApiKeyToken(token);
    if (!presented) throw new UnauthorizedError();
    const known = isFresh ? undefined : this.knownKey(presented.prefix);
    // A key that does not accept the secret may have been rotated since.
    const key = known?.accepts(presented.secretHash) ? known : await this.read(presented.prefix);
    if (!key?.accepts(presented.secretHash)) throw new UnauthorizedError();
    await this.touch(key);
    return key;
  }

  /** Makes the next request read the key again, because this one may have changed its row. */
  forget({ prefix }: ApiKey): void {
    this.known.delete(prefix);
  }

  /** Forgets what is kept of all keys: one of them was revoked or rotated. */
  forgetAll(): void {
    this.epoch++;
    this.known.clear();
  }

  private knownKey(prefix: string): CallerKey | undefined {
    const known = this.known.get(prefix);
    return known && performance.now() - known.readAt < knownMs ? known.key : undefined;
  }

  private async read(prefix: string): Promise<CallerKey | undefined> {
    const [readAt, { epoch }] = [performance.now(), this];
    const key = await this.rows.get(prefix);
    if (this.known.size >= maxKnown) this.known.clear();
    if (key && epoch === this.epoch) this.known.set(prefix, { key, readAt });
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

function keyOfRow({
  max_storage_mb,
  picture_bytes,
  weight_bytes,
  upload_bytes,
  ...columns
}: ApiKey & StorageRow): CallerKey {
  const storage = { max_storage_mb, picture_bytes, weight_bytes, upload_bytes };
  return Object.assign(new ApiKey(), columns, { storage });
}
