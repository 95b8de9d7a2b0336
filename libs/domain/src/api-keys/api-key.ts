import { Column, Entity, Index, PrimaryColumn, Unique } from 'typeorm';
import { bigintAsNumber } from '../common/column';
import { newApiKeySecret, newWebhookSecret, sameSecret } from './api-key-secret';

export const apiKeyScopes = ['read', 'write', 'admin'] as const;
export type ApiKeyScope = (typeof apiKeyScopes)[number];

/**
 * A caller: the key owns everything made with it. Only the SHA-256 of the secret is stored; the
 * public prefix finds the row.
 */
@Entity('api_keys')
@Unique('api_keys_prefix_key', ['prefix'])
@Index('api_keys_seq_idx', ['seq'])
export class ApiKey {
  @PrimaryColumn('varchar', { name: 'id', length: 24, primaryKeyConstraintName: 'api_keys_pkey' })
  id: string;

  /** Order of creation, for lists. */
  @Column('bigint', { name: 'seq', generated: 'increment', transformer: bigintAsNumber })
  seq: number;

  @Column('varchar', { name: 'name', length: 200 })
  name: string;

  @Column('varchar', { name: 'prefix', length: 16 })
  prefix: string;

  /** SHA-256 of the secret part: 32 bytes. The secret is random, so no slow hash is needed. */
  @Column('bytea', { name: 'secret_hash' })
  secretHash: Buffer;

  /** SHA-256 of the previous secret, valid until `previousSecretExpiresAt`. */
  @Column('bytea', { name: 'previous_secret_hash', nullable: true })
  previousSecretHash: Buffer | null;

  @Column({ type: 'timestamptz', name: 'previous_secret_expires_at', nullable: true })
  previousSecretExpiresAt: Date | null;

  /** Signs this caller's webhooks: `whsec_` and 32 bytes in base64. */
  @Column('varchar', { name: 'webhook_secret', length: 80 })
  webhookSecret: string;

  /** Also signs webhooks until `previousWebhookSecretExpiresAt`. */
  @Column('varchar', { name: 'previous_webhook_secret', length: 80, nullable: true })
  previousWebhookSecret: string | null;

  @Column({ type: 'timestamptz', name: 'previous_webhook_secret_expires_at', nullable: true })
  previousWebhookSecretExpiresAt: Date | null;

  @Column('text', { name: 'scopes', array: true, default: () => `'{read,write}'` })
  scopes: ApiKeyScope[];

  /** No engine draws its pictures. */
  @Column('boolean', { name: 'sandbox', default: false })
  sandbox: boolean;

  /** Requests per minute. Here and in the next limits: null means the service's default, 0 no limit. */
  @Column('integer', { name: 'rate_limit_per_minute', nullable: true })
  rateLimitPerMinute: number | null;

  /** Tasks that may wait. */
  @Column('integer', { name: 'max_queued', nullable: true })
  maxQueued: number | null;

  /** Tasks that may be drawn at once. */
  @Column('integer', { name: 'max_concurrent', nullable: true })
  maxConcurrent: number | null;

  /** Megabytes of pictures and weights, including uploads in progress. */
  @Column('integer', { name: 'max_storage_mb', nullable: true })
  maxStorageMb: number | null;

  /** Days after which finished records are deleted; null keeps them. */
  @Column('integer', { name: 'retention_days', nullable: true })
  retentionDays: number | null;

  @Column({ type: 'timestamptz', name: 'created_at', default: () => 'now()' })
  createdAt: Date;

  @Column({ type: 'timestamptz', name: 'last_used_at', nullable: true })
  lastUsedAt: Date | null;

  @Column({ type: 'timestamptz', name: 'revoked_at', nullable: true })
  revokedAt: Date | null;

  /** Whether a presented secret is this key's, or its previous one during the grace period. */
  accepts(secretHash: Buffer, now = new Date()): boolean {
    if (this.revokedAt) return false;
    if (sameSecret(this.secretHash, secretHash)) return true;
    const { previousSecretHash: previous, previousSecretExpiresAt: expiresAt } = this;
    return previous !== null && expiresAt !== null && expiresAt > now && sameSecret(previous, secretHash);
  }

  /** The secrets that sign webhooks now, the newest first. */
  signingSecrets(now = new Date()): string[] {
    const { previousWebhookSecret: previous, previousWebhookSecretExpiresAt: expiresAt } = this;
    return previous && expiresAt && expiresAt > now ? [this.webhookSecret, previous] : [this.webhookSecret];
  }

  /** Whether it may do what needs `scope`; each scope includes those before it. */
  has(scope: ApiKeyScope): boolean {
    return apiKeyScopes.slice(apiKeyScopes.indexOf(scope)).some((held) => this.scopes.includes(held));
  }

  /**
   * Gives it a new secret; the previous one is accepted until `graceEndsAt`.
   * @returns the token, which cannot be recovered later.
   */
  rotateSecret(graceEndsAt: Date): string {
    const { token, secretHash } = newApiKeySecret(this.prefix);
    this.previousSecretHash = this.secretHash;
    this.previousSecretExpiresAt = graceEndsAt;
    this.secretHash = secretHash;
    return token;
  }

  /** Gives it a new webhook secret; the previous one also signs until `graceEndsAt`. */
  rotateWebhookSecret(graceEndsAt: Date): void {
    this.previousWebhookSecret = this.webhookSecret;
    this.previousWebhookSecretExpiresAt = graceEndsAt;
    this.webhookSecret = newWebhookSecret();
  }
}
