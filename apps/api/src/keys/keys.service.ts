import { newApiKey } from '@app/database';
import { ApiKey, ConflictError, isIdentifier, NotFoundError } from '@app/domain';
import type {
  CreatedKeyDto,
  CreateKeyDto,
  RotatedKeyDto,
  RotatedWebhookSecretDto,
  UpdateKeyDto,
  UsageDto,
} from '@app/domain/http';
import { KeyDto } from '@app/domain/http';
import { announceKey, revokeKey } from '@app/image-tasks';
import { afterCommit } from '@app/queue';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { ApiKeysService } from '../auth/api-keys.service';
import type { List } from '../infrastructure/list';
import { listOf } from '../infrastructure/list';
import type { UsageQuery } from '../usage/usage-query';
import { UsageService } from '../usage/usage.service';

export const defaultGraceHours = 24;
const hourMs = 3_600_000;

/** All API keys, for callers who may manage them. Their pictures and records stay their own. */
@Injectable()
export class KeysService {
  constructor(
    @InjectRepository(ApiKey) private readonly keys: Repository<ApiKey>,
    private readonly callers: ApiKeysService,
    private readonly usages: UsageService,
  ) {}

  list(): List {
    return listOf(this.keys.createQueryBuilder('key'), (rows) => rows.map((key) => KeyDto.from(key)));
  }

  /** @throws NotFoundError */
  async findOne(id: string): Promise<KeyDto> {
    return KeyDto.from(await this.find(id));
  }

  /** What a key has drawn. @throws NotFoundError */
  async usage(id: string, query: UsageQuery): Promise<UsageDto[]> {
    await this.find(id);
    return this.usages.findAll(id, query);
  }

  /** @returns the key with its secrets, which cannot be recovered later. */
  async create(dto: CreateKeyDto): Promise<CreatedKeyDto> {
    const { apiKey, token } = newApiKey(dto.name, dto.scopes ?? ['write']);
    await this.keys.insert({ ...apiKey, ...changesOf(dto), sandbox: dto.sandbox ?? false });
    const key = await this.find(apiKey.id);
    return { ...KeyDto.from(key), token, webhook_secret: key.webhookSecret };
  }

  /** Changes the name and the limits that the body has. @throws NotFoundError; ConflictError for a revoked key. */
  async update(id: string, dto: UpdateKeyDto): Promise<KeyDto> {
    refuseRevoked(await this.find(id));
    const changes = { ...changesOf(dto), ...(dto.name !== undefined && { name: dto.name }) };
    if (Object.keys(changes).length > 0) await this.keys.update({ id }, changes);
    return KeyDto.from(await this.find(id));
  }

  /**
   * Gives a key a new token; the previous one stays valid for a while.
   * @throws NotFoundError; ConflictError for a revoked key.
   */
  async rotate(id: string, graceHours = defaultGraceHours): Promise<RotatedKeyDto> {
    await this.find(id);
    const until = new Date(Date.now() + graceHours * hourMs);
    const rotated = await this.keys.manager.transaction(async (manager) => {
      // Two rotations at the same time would both keep the same previous token.
      const key = await manager.findOneOrFail(ApiKey, { where: { id }, lock: { mode: 'pessimistic_write' } });
      refuseRevoked(key);
      const token = key.rotateSecret(until);
      const { secretHash, previousSecretHash, previousSecretExpiresAt } = key;
      await manager.update(ApiKey, { id }, { secretHash, previousSecretHash, previousSecretExpiresAt });
      await announceKey(manager, id);
      return { ...KeyDto.from(key), token, previous_token_expires_at: until.toISOString() };
    });
    await afterCommit(async () => this.callers.forgetAll());
    return rotated;
  }

  /**
   * Gives a key a new secret for its webhooks; the previous one also signs for a while.
   * @throws NotFoundError; ConflictError for a revoked key.
   */
  async rotateWebhookSecret(id: string, graceHours = defaultGraceHours): Promise<RotatedWebhookSecretDto> {
    await this.find(id);
    const until = new Date(Date.now() + graceHours * hourMs);
    return this.keys.manager.transaction(async (manager) => {
      const key = await manager.findOneOrFail(ApiKey, { where: { id }, lock: { mode: 'pessimistic_write' } });
      refuseRevoked(key);
      key.rotateWebhookSecret(until);
      const { webhookSecret, previousWebhookSecret, previousWebhookSecretExpiresAt } = key;
      await manager.update(ApiKey, { id }, { webhookSecret, previousWebhookSecret, previousWebhookSecretExpiresAt });
      const expiresAt = until.toISOString();
      return { ...KeyDto.from(key), webhook_secret: webhookSecret, previous_webhook_secret_expires_at: expiresAt };
    });
  }

  /**
   * Revokes a key: its connections are closed and its tasks canceled. Nobody revokes the key that asks, so that there is always one left
   * that can make others.
   * @throws NotFoundError, ConflictError
   */
  async revoke(callerId: string, id: string): Promise<void> {
    await this.find(id);
    if (id === callerId)
      throw new ConflictError(
        'KeyInUse',
        'A key cannot revoke itself; use another with the scope "admin", or the command.',
      );
    await revokeKey(this.keys.manager, id);
    await afterCommit(async () => this.callers.forgetAll());
  }

  private async find(id: string): Promise<ApiKey> {
    const key = isIdentifier(id) ? await this.keys.findOneBy({ id }) : null;
    if (!key) throw new NotFoundError('Key');
    return key;
  }
}

function refuseRevoked({ revokedAt }: ApiKey): void {
  if (revokedAt) throw new ConflictError('KeyRevoked', 'The key is revoked; make a new one.');
}

type Limits = Pick<ApiKey, 'rateLimitPerMinute' | 'maxQueued' | 'maxConcurrent' | 'maxStorageMb' | 'retentionDays'>;

/** The columns of the limits that a body has. A word stands for null: the service's default, or for ever. */
function changesOf(dto: UpdateKeyDto): Partial<Limits> {
  const given = {
    rateLimitPerMinute: dto.rate_limit_per_minute,
    maxQueued: dto.max_queued,
    maxConcurrent: dto.max_concurrent,
    maxStorageMb: dto.max_storage_mb,
    retentionDays: dto.retention_days,
  };
  return Object.fromEntries(
    Object.entries(given)
      .filter(([, value]) => value !== undefined)
      .map(([column, value]) => [column, typeof value === 'number' ? value : null]),
  );
}
