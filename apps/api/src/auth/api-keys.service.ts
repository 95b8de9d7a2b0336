import { ApiKey, parseApiKeyToken } from '@app/domain';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { UnauthorizedError } from '../http/http-errors';

/** `last_used_at` is written at most this often for a key. */
const lastUsedResolutionMs = 60_000;

/** Finds the caller of a request. */
@Injectable()
export class ApiKeysService {
  constructor(@InjectRepository(ApiKey) private readonly apiKeys: Repository<ApiKey>) {}

  /** @throws UnauthorizedError for a token that is malformed, unknown or revoked; the answer does not say which. */
  async authenticate(token: string): Promise<ApiKey> {
    const presented = parseApiKeyToken(token);
    const key = presented && (await this.apiKeys.findOneBy({ prefix: presented.prefix }));
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
