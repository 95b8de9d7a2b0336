import {
  ApiKey,
  changeKey,
  ConflictError,
  defaultScopes,
  graceEnd,
  isIdentifier,
  type KeySettings,
  nameAccount,
  newApiKey,
  NotFoundError,
  revokeKey,
  rotateKey,
  rotateWebhookSecret,
  saveKey,
} from '@app/domain';
import {
  type CreatedKeyDto,
  type CreateKeyDto,
  KeyDto,
  type RotatedKeyDto,
  type RotatedWebhookSecretDto,
  type UpdateKeyDto,
  type UsageDto,
  type UsageQueryDto,
} from '@app/domain/http';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { type List, listOf } from '../http/list';
import { ModelsService } from '../models/models.service';
import { UsageService } from './usage.service';

/** All API keys, for callers who may manage them. Their pictures and records stay their own. */
@Injectable()
export class KeysService {
  constructor(
    @InjectRepository(ApiKey) private readonly keys: Repository<ApiKey>,
    private readonly usages: UsageService,
    private readonly models: ModelsService,
  ) {}

  list(): List {
    return listOf(this.keys.createQueryBuilder('key'), (rows) => rows.map((key) => KeyDto.from(key)));
  }

  /** @throws NotFoundError */
  async findOne(id: string): Promise<KeyDto> {
    return KeyDto.from(await this.find(id));
  }

  /** @throws NotFoundError */
  async usage(id: string, query: UsageQueryDto): Promise<UsageDto[]> {
    return this.usages.of(await this.find(id), query);
  }

  /** @returns the key with its secrets, which cannot be recovered later. */
  async create(dto: CreateKeyDto): Promise<CreatedKeyDto> {
    await this.assertFilter(dto);
    const { apiKey, token } = newApiKey(dto.name, dto.scopes ?? defaultScopes);
    await saveKey(
      this.keys.manager,
      Object.assign(apiKey, changesOf(dto), { sandbox: dto.sandbox ?? false }),
      dto.account,
    );
    const key = await this.find(apiKey.id);
    return { ...KeyDto.from(key), token, webhook_secret: key.webhookSecret };
  }

  /** Pictures are looked at by a safety checker. @throws UnprocessableError `SafetyNotInstalled` */
  private async assertFilter({ filter }: Pick<UpdateKeyDto, 'filter'>): Promise<void> {
    if (filter && filter !== 'off') await this.models.assertSafety('/filter');
  }

  /** Changes the settings that the body has. @throws NotFoundError; ConflictError for a revoked key, or another account. */
  async update(id: string, dto: UpdateKeyDto): Promise<KeyDto> {
    await this.find(id);
    await this.assertFilter(dto);
    if (dto.account !== undefined) await nameAccount(this.keys.manager, id, dto.account);
    const changes = { ...changesOf(dto), ...(dto.name !== undefined && { name: dto.name }) };
    return KeyDto.from(await changeKey(this.keys.manager, id, changes));
  }

  /**
   * Gives a key a new token; the previous one stays valid for a while.
   * @throws NotFoundError; ConflictError for a revoked key.
   */
  async rotate(id: string, graceHours?: number): Promise<RotatedKeyDto> {
    await this.find(id);
    const until = graceEnd(graceHours);
    const { key, token } = await rotateKey(this.keys.manager, id, until);
    return { ...KeyDto.from(key), token, previous_token_expires_at: until.toISOString() };
  }

  /**
   * Gives a key a new secret for its webhooks; the previous one also signs for a while.
   * @throws NotFoundError; ConflictError for a revoked key.
   */
  async rotateWebhookSecret(id: string, graceHours?: number): Promise<RotatedWebhookSecretDto> {
    await this.find(id);
    const until = graceEnd(graceHours);
    const key = await rotateWebhookSecret(this.keys.manager, id, until);
    const expiresAt = until.toISOString();
    return { ...KeyDto.from(key), webhook_secret: key.webhookSecret, previous_webhook_secret_expires_at: expiresAt };
  }

  /**
   * Revokes a key: its connections are closed and its tasks canceled. A key cannot revoke itself, so that one is always
   * left that can make others.
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
  }

  private async find(id: string): Promise<ApiKey> {
    const key = isIdentifier(id) ? await this.keys.findOneBy({ id }) : null;
    if (!key) throw new NotFoundError('Key');
    return key;
  }
}

/** The changed columns. A word stands for null: the service's default, or for ever. */
function changesOf(dto: UpdateKeyDto): Partial<KeySettings> {
  const given = {
    rateLimitPerMinute: dto.rate_limit_per_minute,
    maxQueued: dto.max_queued,
    maxConcurrent: dto.max_concurrent,
    maxStorageMb: dto.max_storage_mb,
    retentionDays: dto.retention_days,
    keepTrainingUploads: dto.keep_training_uploads ?? undefined,
  };
  const limits = Object.fromEntries(
    Object.entries(given)
      .filter(([, value]) => value !== undefined)
      .map(([column, value]) => [column, typeof value === 'string' ? null : value]),
  );
  return { ...limits, ...(dto.filter && { filter: dto.filter }) };
}
